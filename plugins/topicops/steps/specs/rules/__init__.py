"""What specs must satisfy beyond their field types: one family of rules in each file, one line each in ``RULES``.

A rule gets the whole ``EnvironmentView`` and yields findings; it does not decide on severity or order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView
from topicops.steps.specs.rules import (
    assignments,
    config_combinations,
    environments,
    lifecycles,
    name_clashes,
    names,
    numbers,
    ownership,
    references,
    single_configs,
)

Rule = Callable[[EnvironmentView], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    names.names_are_legal,
    names.files_are_named_after_topics,
    names.protected_names_stay_out,
    name_clashes.names_do_not_clash,
    name_clashes.other_names_differ_by_more_than_case,
    single_configs.configs_are_valid,
    single_configs.configs_are_usable,
    single_configs.small_numbers_have_a_unit,
    assignments.assignments_are_sound,
    numbers.numbers_are_given,
    numbers.partitions_stay_in_the_limit,
    numbers.replication_is_high_enough,
    config_combinations.replicas_in_sync_fit_the_replication,
    config_combinations.compaction_lags_agree,
    config_combinations.local_retention_fits_the_total,
    config_combinations.local_retention_is_the_total_where_nothing_is_copied,
    config_combinations.segments_roll_before_they_expire,
    config_combinations.segments_hold_the_largest_batch,
    config_combinations.segments_keep_most_of_their_age,
    config_combinations.compaction_has_keys,
    config_combinations.tiered_topics_are_not_compacted,
    config_combinations.unclean_elections_are_noticed,
    lifecycles.lifecycles_are_complete,
    ownership.names_fit_the_pattern,
    ownership.required_labels_are_given,
    ownership.owners_may_have_topics,
    ownership.names_belong_to_their_owners,
    ownership.budgets_hold,
    references.profiles_exist,
    references.overrides_have_topics,
    references.exceptions_have_topics,
    references.environments_exist,
    references.alterable_configs_exist,
    environments.production_names_its_cluster,
    environments.production_needs_a_second_person,
    environments.releases_are_supported,
    environments.addresses_are_given,
    environments.leases_can_be_had,
    environments.schedules_are_readable,
    environments.owner_can_be_shown,
    environments.exceptions_are_current,
    environments.environments_come_after_others,
)

"""What specs must satisfy beyond their field types: one family of rules in each file, one line each in ``RULES``.

A rule gets the whole ``EnvironmentView`` and yields findings; it does not decide on severity or order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView
from topicops.steps.specs.rules import configs, environments, names, ownership, policy, values

Rule = Callable[[EnvironmentView], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    names.names_are_legal,
    names.files_are_named_after_topics,
    names.protected_names_stay_out,
    names.names_fit_behind_the_prefix,
    names.names_do_not_clash,
    names.other_names_differ_by_more_than_case,
    configs.configs_are_valid,
    configs.configs_are_usable,
    configs.small_numbers_have_a_unit,
    values.assignments_are_sound,
    values.numbers_are_given,
    values.partitions_stay_in_the_limit,
    values.replication_is_high_enough,
    configs.replicas_in_sync_fit_the_replication,
    configs.compaction_lags_agree,
    configs.local_retention_fits_the_total,
    configs.local_retention_is_the_total_where_nothing_is_copied,
    configs.segments_roll_before_they_expire,
    configs.segments_hold_the_largest_batch,
    configs.segments_keep_most_of_their_age,
    configs.compaction_has_keys,
    configs.tiered_topics_are_not_compacted,
    configs.unclean_elections_are_noticed,
    values.lifecycles_are_complete,
    ownership.names_fit_the_pattern,
    ownership.required_labels_are_given,
    ownership.owners_may_have_topics,
    ownership.names_belong_to_their_owners,
    ownership.budgets_hold,
    ownership.profiles_exist,
    ownership.overrides_have_topics,
    ownership.exceptions_have_topics,
    ownership.environments_exist,
    ownership.alterable_configs_exist,
    policy.rules_can_be_judged,
    policy.topics_fit_the_rules,
    environments.production_names_its_cluster,
    environments.production_needs_a_second_person,
    environments.releases_are_supported,
    environments.addresses_are_given,
    environments.leases_can_be_had,
    environments.airflow_takes_schedules_and_owner,
    environments.exceptions_are_current,
    environments.environments_come_after_others,
    environments.environments_of_one_cluster_share_no_names,
    environments.own_rules_can_be_judged,
)

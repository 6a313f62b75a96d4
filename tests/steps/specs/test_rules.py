"""One row for each way in which a rule can fail: what is written, and what comes of it, on which characters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fixtures.spec_folder import HEAD, LOCAL, PROD, configs, topic, validated, world
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Span
from topicops.steps.specs.rules import RULES, Rule, environments, names, ownership, values
from topicops.steps.specs.rules import configs as config_rules

STAGING = LOCAL.replace("local", "staging") + "  policy: {}\n"
KRAFT = LOCAL.replace("sandbox", "sandbox, source: kafka, lease: none")


@dataclass(frozen=True)
class Row:
    rule: Rule
    code: str
    file: str
    marked: str
    """The characters that the problem is shown on."""
    files: Mapping[str, str]
    local: str = LOCAL
    warns: bool = False


def row(
    name: str,
    rule: Rule,
    code: str,
    marked: str,
    text: str,
    *,
    file: str = "web/a.yaml",
    local: str = LOCAL,
    warns: bool = False,
) -> Any:
    """One file, a topic's, which is wrong."""
    return pytest.param(Row(rule, code, file, marked, {file: text}, local, warns), id=name)


def rows(
    name: str,
    rule: Rule,
    code: str,
    file: str,
    marked: str,
    files: Mapping[str, str],
    *,
    local: str = LOCAL,
    warns: bool = False,
) -> Any:
    """Several files, of which ``file`` is wrong."""
    return pytest.param(Row(rule, code, file, marked, files, local, warns), id=name)


def named(name: str) -> str:
    return topic(f'"{name}"')


def profile(name: str, spec: str) -> str:
    return HEAD.format(kind="Profile", name=name) + f"  {spec}\n"


def owners(*entries: str) -> str:
    return (
        HEAD.format(kind="Owners", name="owners") + "  owners:\n" + "".join(f"    - {{{each}}}\n" for each in entries)
    )


PRODUCTION = LOCAL.replace("sandbox", 'production, id: x, kafkaVersion: "3.9"')


def policy(text: str) -> str:
    return f"{LOCAL}  policy: {{{text}}}\n"


def local_airflow(text: str) -> str:
    return f"{LOCAL}  airflow: {text}\n"


ROWS = [
    row("an odd character", names.names_are_legal, "TOP207", '"a b"', named("a b")),
    row("250 characters", names.names_are_legal, "TOP208", '"' + "a" * 250 + '"', named("a" * 250)),
    row("two dots", names.names_are_legal, "TOP209", '".."', named("..")),
    row("file and topic", names.files_are_named_after_topics, "TOP117", '"b"', named("b")),
    rows(
        "file and profile",
        names.files_are_named_after_topics,
        "TOP117",
        "profiles/p.yaml",
        "q",
        {"profiles/p.yaml": profile("q", "partitions: 3")},
    ),
    row("two underscores", names.protected_names_stay_out, "TOP210", "__a", topic("__a"), file="web/__a.yaml"),
    row(
        "a pattern of the environment",
        names.protected_names_stay_out,
        "TOP210",
        "a",
        topic("a"),
        local=policy('protectedTopics: ["?"]'),
    ),
    rows(
        "one name twice",
        names.names_do_not_clash,
        "TOP301",
        "web/a.yaml",
        "a",
        {"shop/a.yaml": topic("a"), "web/a.yaml": topic("a")},
    ),
    rows(
        "one name to Kafka's metrics",
        names.names_do_not_clash,
        "TOP302",
        "web/a_b.yaml",
        "a_b",
        {"web/a.b.yaml": topic("a.b"), "web/a_b.yaml": topic("a_b")},
    ),
    rows(
        "case only",
        names.names_do_not_clash,
        "TOP303",
        "web/orders.yaml",
        "orders",
        {"web/Orders.yaml": topic("Orders"), "web/orders.yaml": topic("orders")},
    ),
    rows(
        "a look-alike",
        names.names_do_not_clash,
        "TOP304",
        "web/payrnents.yaml",
        "payrnents",
        {"web/payments.yaml": topic("payments"), "web/payrnents.yaml": topic("payrnents")},
        warns=True,
    ),
    row("no such config", config_rules.configs_are_valid, "TOP305", "retention.mss", configs("retention.mss: 7d")),
    row(
        "a broker's setting",
        config_rules.configs_are_valid,
        "TOP305",
        "log.retention.hours",
        configs("log.retention.hours: 7"),
    ),
    row("below the range", config_rules.configs_are_valid, "TOP306", "-2", configs("retention.ms: -2")),
    row("an unknown word", config_rules.configs_are_valid, "TOP306", "Compact", configs("cleanup.policy: Compact")),
    row("octal to some", config_rules.configs_are_valid, "TOP204", "010", configs("retention.ms: 010")),
    row("a unit of people", config_rules.configs_are_valid, "TOP214", "7 days", configs("retention.ms: 7 days")),
    rows(
        "a value of a profile",
        config_rules.configs_are_valid,
        "TOP306",
        "profiles/p.yaml",
        "0",
        {"profiles/p.yaml": profile("p", "configs: {segment.ms: 0}")},
    ),
    row(
        "a throttle list",
        config_rules.configs_are_usable,
        "TOP313",
        "leader.replication.throttled.replicas",
        configs('leader.replication.throttled.replicas: "*"'),
    ),
    row(
        "newer than the cluster",
        config_rules.configs_are_usable,
        "TOP314",
        "compression.gzip.level",
        configs("compression.gzip.level: 9"),
        local=LOCAL.replace("sandbox", 'sandbox, kafkaVersion: "3.7"'),
    ),
    row(
        "gone from the cluster",
        config_rules.configs_are_usable,
        "TOP314",
        "message.downconversion.enable",
        configs("message.downconversion.enable: false"),
        local=KRAFT.replace("sandbox", 'sandbox, kafkaVersion: "4.0"'),
    ),
    row(
        "a value that only a later release takes",
        config_rules.configs_are_valid,
        "TOP306",
        "zstd",
        configs("compression.type: zstd"),
        local=LOCAL.replace("sandbox", 'sandbox, kafkaVersion: "2.0"'),
    ),
    row(
        "a value that only an earlier release took",
        config_rules.configs_are_valid,
        "TOP306",
        "1000",
        configs("segment.bytes: 1000"),
        local=KRAFT.replace("sandbox", 'sandbox, kafkaVersion: "4.1"'),
    ),
    row(
        "a message format that no replica could open",
        config_rules.configs_are_valid,
        "TOP306",
        '"2.5"',
        configs('message.format.version: "2.5"'),
        local=LOCAL.replace("sandbox", 'sandbox, kafkaVersion: "1.1"'),
    ),
    row(
        "without effect",
        config_rules.configs_are_usable,
        "TOP314",
        "message.format.version",
        configs("message.format.version: 3.0-IV1"),
    ),
    row(
        "only without ZooKeeper, copy",
        config_rules.configs_are_usable,
        "TOP314",
        "remote.log.copy.disable",
        configs("remote.log.copy.disable: true"),
    ),
    row(
        "only without ZooKeeper, delete",
        config_rules.configs_are_usable,
        "TOP314",
        "remote.log.delete.on.disable",
        configs("remote.log.delete.on.disable: true"),
    ),
    row(
        "not on the list",
        config_rules.configs_are_usable,
        "TOP311",
        "segment.ms",
        configs("segment.ms: 1d"),
        local=policy("alterableConfigs: [retention.ms]"),
    ),
    row(
        "a broker twice",
        values.assignments_are_sound,
        "TOP205",
        "[1, 1]",
        topic("a", "spec: {assignment: {0: [1, 1]}}\n"),
    ),
    row(
        "an assignment and a placement",
        values.assignments_are_sound,
        "TOP205",
        "kafka",
        topic("a", "spec: {placement: kafka, assignment: {0: [1]}}\n"),
    ),
    row(
        "numbers and the assignment",
        values.assignments_are_sound,
        "TOP205",
        "2",
        topic("a", "spec: {partitions: 2, assignment: {0: [1]}}\n"),
    ),
    row(
        "no layer gives it",
        values.numbers_are_given,
        "TOP202",
        "keyed",
        topic("a", "spec: {keyed: true}\n"),
        local=LOCAL.replace("replicationFactor: 3", "configs: {}"),
    ),
    row("above the limit", values.partitions_stay_in_the_limit, "TOP320", "25", topic("a", "spec: {partitions: 25}\n")),
    row(
        "too few replicas",
        values.replication_is_high_enough,
        "TOP310",
        "2",
        topic("a", "spec: {replicationFactor: 2}\n"),
        local=policy("minReplicationFactor: 3"),
    ),
    row(
        "above the replicas",
        config_rules.replicas_in_sync_fit_the_replication,
        "TOP308",
        "4",
        configs("min.insync.replicas: 4"),
    ),
    row(
        "all the replicas",
        config_rules.replicas_in_sync_fit_the_replication,
        "TOP309",
        "3",
        configs("min.insync.replicas: 3"),
        warns=True,
    ),
    row(
        "lags crossed",
        config_rules.compaction_lags_agree,
        "TOP307",
        "2h",
        configs("min.compaction.lag.ms: 2h, max.compaction.lag.ms: 1h"),
    ),
    row(
        "more here than in all, time",
        config_rules.local_retention_fits_the_total,
        "TOP315",
        "2d",
        configs("remote.storage.enable: true, local.retention.ms: 2d, retention.ms: 1d"),
    ),
    row(
        "more here than in all, size",
        config_rules.local_retention_fits_the_total,
        "TOP315",
        "-1",
        configs("remote.storage.enable: true, local.retention.bytes: -1, retention.bytes: 1GiB"),
    ),
    row(
        "more here than in all, before tiered storage was released",
        config_rules.local_retention_fits_the_total,
        "TOP315",
        "2d",
        configs("local.retention.ms: 2d, retention.ms: 1d"),
        local=LOCAL.replace("sandbox", 'sandbox, kafkaVersion: "3.5"'),
    ),
    row(
        "no limit in all, before tiered storage was released",
        config_rules.local_retention_fits_the_total,
        "TOP315",
        "2d",
        configs("local.retention.ms: 2d, retention.ms: -1"),
        local=LOCAL.replace("sandbox", 'sandbox, kafkaVersion: "3.0"'),
    ),
    row(
        "less here and nothing copied",
        config_rules.local_retention_is_the_total_where_nothing_is_copied,
        "TOP315",
        "50s",
        configs(
            "remote.storage.enable: true, remote.log.copy.disable: true, local.retention.ms: 50s, retention.ms: 100s"
        ),
        local=KRAFT,
    ),
    row(
        "older than kept",
        config_rules.segments_roll_before_they_expire,
        "TOP316",
        "7d",
        configs("segment.ms: 7d, retention.ms: 1d"),
        warns=True,
    ),
    row(
        "smaller than a batch",
        config_rules.segments_hold_the_largest_batch,
        "TOP327",
        "512KiB",
        configs("segment.bytes: 512KiB, max.message.bytes: 1MiB"),
        warns=True,
    ),
    row(
        "days that are ms",
        config_rules.small_numbers_have_a_unit,
        "TOP335",
        "7",
        configs("retention.ms: 7"),
        warns=True,
    ),
    row(
        "mebibytes that are bytes",
        config_rules.small_numbers_have_a_unit,
        "TOP335",
        "500",
        configs("retention.bytes: 500"),
        warns=True,
    ),
    row(
        "one second less a millisecond",
        config_rules.small_numbers_have_a_unit,
        "TOP335",
        "999",
        configs("delete.retention.ms: 999"),
        warns=True,
    ),
    row(
        "jitter above the age",
        config_rules.segments_keep_most_of_their_age,
        "TOP328",
        "2h",
        configs("segment.jitter.ms: 2h, segment.ms: 1h"),
        warns=True,
    ),
    row(
        "compacted without keys",
        config_rules.compaction_has_keys,
        "TOP323",
        "compact",
        configs("cleanup.policy: compact", "keyed: false, "),
    ),
    row(
        "tiered and compacted",
        config_rules.tiered_topics_are_not_compacted,
        "TOP324",
        "true",
        configs("remote.storage.enable: true, cleanup.policy: compact"),
    ),
    row(
        "an unclean election",
        config_rules.unclean_elections_are_noticed,
        "TOP312",
        "true",
        configs("unclean.leader.election.enable: true"),
        warns=True,
    ),
    row("no spec", values.lifecycles_are_complete, "TOP202", "", topic("a", "")),
    row(
        "a tombstone without a reason",
        values.lifecycles_are_complete,
        "TOP322",
        "state",
        topic("a", "lifecycle: {state: absent}\n"),
    ),
    row(
        "a tombstone with a spec",
        values.lifecycles_are_complete,
        "TOP322",
        "spec",
        topic("a", "lifecycle: {state: absent, reason: r}\nspec: {}\n"),
    ),
    row(
        "a pause without an end",
        values.lifecycles_are_complete,
        "TOP322",
        "state",
        topic("a", "spec: {}\nlifecycle: {state: paused, reason: r}\n"),
    ),
    row(
        "a pause that is over",
        values.lifecycles_are_complete,
        "TOP322",
        "2030-01-01T00:00:00Z",
        topic("a", "spec: {}\nlifecycle: {state: paused, reason: r, until: 2030-01-01T00:00:00Z}\n"),
        warns=True,
    ),
    row(
        "a field of the other state",
        values.lifecycles_are_complete,
        "TOP201",
        "until",
        topic("a", "lifecycle: {state: absent, reason: r, until: 2031-01-01T00:00:00Z}\n"),
    ),
    row("no such profile", ownership.profiles_exist, "TOP318", "p", topic("a", "spec: {profile: p}\n")),
    rows(
        "an override of nothing",
        ownership.overrides_have_topics,
        "TOP319",
        "environments/local.yaml",
        "b",
        {"web/a.yaml": topic("a")},
        local=LOCAL + "  overrides: {b: {partitions: 4}}\n",
    ),
    rows(
        "production without an id",
        environments.production_names_its_cluster,
        "TOP325",
        "environments/local.yaml",
        "class",
        {"web/a.yaml": topic("a")},
        local=LOCAL.replace("sandbox", 'production, kafkaVersion: "3.9"'),
    ),
    rows(
        "an address of ZooKeeper is missing",
        environments.addresses_are_given,
        "TOP325",
        "environments/local.yaml",
        "class",
        {"web/a.yaml": topic("a")},
        local=LOCAL.replace("zookeeper: {hosts: zk}, ", ""),
    ),
    rows(
        "an address of the brokers is missing",
        environments.addresses_are_given,
        "TOP325",
        "environments/local.yaml",
        "{applier: x}",
        {"web/a.yaml": topic("a")},
        local=LOCAL.replace("{bootstrapServers: b}", "{applier: x}"),
    ),
    rows(
        "brokers as the source, and a lease in ZooKeeper",
        environments.leases_can_be_had,
        "TOP325",
        "environments/local.yaml",
        "zookeeper",
        {"web/a.yaml": topic("a")},
        local=LOCAL.replace("sandbox", "sandbox, source: kafka, lease: zookeeper"),
    ),
    rows(
        "brokers as the source, and no lease named",
        environments.leases_can_be_had,
        "TOP325",
        "environments/local.yaml",
        "kafka",
        {"web/a.yaml": topic("a")},
        local=LOCAL.replace("sandbox", "sandbox, source: kafka"),
    ),
    rows(
        "a version that is none",
        environments.releases_are_supported,
        "TOP205",
        "environments/local.yaml",
        "newest",
        {"web/a.yaml": topic("a")},
        local=LOCAL.replace("sandbox", "sandbox, kafkaVersion: newest"),
    ),
    rows(
        "a release before the oldest",
        environments.releases_are_supported,
        "TOP205",
        "environments/local.yaml",
        '"0.11"',
        {"web/a.yaml": topic("a")},
        local=LOCAL.replace("sandbox", 'sandbox, kafkaVersion: "0.11"'),
    ),
    rows(
        "a release that has no ZooKeeper",
        environments.releases_are_supported,
        "TOP325",
        "environments/local.yaml",
        '"4.1"',
        {"web/a.yaml": topic("a")},
        local=LOCAL.replace("sandbox", 'sandbox, kafkaVersion: "4.1"'),
    ),
    rows(
        "a release after the newest",
        environments.releases_are_supported,
        "TOP334",
        "environments/local.yaml",
        '"99.9"',
        {"web/a.yaml": configs("retention.ms: 1d")},
        local=KRAFT.replace("sandbox", 'sandbox, kafkaVersion: "99.9"'),
        warns=True,
    ),
    rows(
        "an approval by parameter in production",
        environments.production_needs_a_second_person,
        "TOP338",
        "environments/local.yaml",
        "[question, parameter]",
        {},
        local=PRODUCTION + "  policy: {approvals: [question, parameter]}\n",
        warns=True,
    ),
    rows(
        "an author who approves alone in production",
        environments.production_needs_a_second_person,
        "TOP338",
        "environments/local.yaml",
        "risky",
        {},
        local=PRODUCTION + "  policy: {approvals: [question], authorApproves: risky}\n",
        warns=True,
    ),
    rows(
        "production without a release",
        environments.releases_are_supported,
        "TOP334",
        "environments/local.yaml",
        "class",
        {"web/a.yaml": topic("a")},
        local=LOCAL.replace("sandbox", "production, id: x"),
        warns=True,
    ),
    rows(
        "an exception that is over",
        environments.exceptions_are_current,
        "TOP326",
        "environments/local.yaml",
        "2030-01-31T12:00:00Z",
        {"web/a.yaml": topic("a")},
        warns=True,
        local=policy("exceptions: [{topic: a, code: TOP320, reason: r, until: 2030-01-31T12:00:00Z}]"),
    ),
    rows(
        "a schedule that is none",
        environments.schedules_are_readable,
        "TOP205",
        "environments/local.yaml",
        "every 7m",
        {"web/a.yaml": topic("a")},
        local=local_airflow("{schedule: every 7m, driftSchedule: '@daily'}"),
    ),
    rows(
        "two owners in one name",
        environments.owner_can_be_shown,
        "TOP205",
        "environments/local.yaml",
        "'a, b'",
        {"web/a.yaml": topic("a")},
        local=local_airflow("{owner: 'a, b', ownerLink: 'mailto:kafka@example.com'}"),
    ),
    rows(
        "a link that Airflow does not take",
        environments.owner_can_be_shown,
        "TOP205",
        "environments/local.yaml",
        "'http:///kafka'",
        {"web/a.yaml": topic("a")},
        local=local_airflow("{owner: kafka, ownerLink: 'http:///kafka'}"),
    ),
    rows(
        "an expression that is none",
        ownership.names_fit_the_pattern,
        "TOP205",
        "environments/local.yaml",
        '"(?=a).*"',
        {"web/a.yaml": topic("a")},
        local=policy('namePattern: "(?=a).*"'),
    ),
    row(
        "another name",
        ownership.names_fit_the_pattern,
        "TOP329",
        "a",
        topic("a"),
        local=policy('namePattern: "[b-z]|aa"'),
    ),
    row(
        "a label that is not there",
        ownership.required_labels_are_given,
        "TOP330",
        "tier",
        topic("a", metadata=", labels: {tier: x}"),
        local=policy("requiredLabels: [tier, cost]"),
    ),
    row(
        "no labels",
        ownership.required_labels_are_given,
        "TOP330",
        "name",
        topic("a"),
        local=policy("requiredLabels: [tier]"),
    ),
    row(
        "an owner that is not allowed",
        ownership.owners_may_have_topics,
        "TOP331",
        "team-web",
        topic("a"),
        local=policy('allowedOwners: [team-shop, "*-data"]'),
    ),
    rows(
        "an owner that is not listed",
        ownership.owners_may_have_topics,
        "TOP331",
        "web/a.yaml",
        "team-web",
        {"web/a.yaml": topic("a"), "owners.yaml": owners("owner: team-shop")},
    ),
    rows(
        "an owner that is listed for another environment",
        ownership.owners_may_have_topics,
        "TOP331",
        "web/a.yaml",
        "team-web",
        {**PROD, "web/a.yaml": topic("a"), "owners.yaml": owners("owner: team-web, environments: [prod]")},
    ),
    rows(
        "another owner's name",
        ownership.names_belong_to_their_owners,
        "TOP332",
        "web/a.b.yaml",
        "a.b",
        {"web/a.b.yaml": topic("a.b"), "owners.yaml": owners("owner: team-web", 'owner: team-a, topics: ["a.*"]')},
    ),
    rows(
        "too many replicas of one owner",
        ownership.budgets_hold,
        "TOP321",
        "owners.yaml",
        "17",
        {
            "web/a.yaml": topic("a"),
            "web/b.yaml": topic("b"),
            "owners.yaml": owners("owner: team-web, partitions: 6, replicas: 17"),
        },
    ),
    row(
        "an environment that has no file",
        ownership.environments_exist,
        "TOP336",
        "locla",
        topic("a", metadata=", environments: [local, locla]"),
    ),
    row(
        "the id of a topic in an environment that has no file",
        ownership.environments_exist,
        "TOP336",
        "Local",
        topic("a", f"lifecycle: {{state: absent, reason: gone, topicIds: {{Local: {'A' * 22}}}}}\n"),
    ),
    rows(
        "an owner in an environment that has no file",
        ownership.environments_exist,
        "TOP336",
        "owners.yaml",
        "qa",
        {"web/a.yaml": topic("a"), "owners.yaml": owners("owner: team-web, environments: [local, qa]")},
    ),
    rows(
        "an exception for no topic",
        ownership.exceptions_have_topics,
        "TOP337",
        "environments/local.yaml",
        "aa",
        {"web/a.yaml": topic("a")},
        local=policy("exceptions: [{topic: aa, code: TOP320, reason: r}]"),
    ),
    rows(
        "a config that may change and that Kafka does not have",
        ownership.alterable_configs_exist,
        "TOP305",
        "environments/local.yaml",
        "retention",
        {"web/a.yaml": topic("a")},
        local=policy("alterableConfigs: [retention.ms, retention]"),
    ),
    rows(
        "two profiles that a file system may take for one",
        names.other_names_differ_by_more_than_case,
        "TOP303",
        "profiles/long.yaml",
        "name",
        {
            "profiles/Long.yaml": profile("Long", "partitions: 3"),
            "profiles/long.yaml": profile("long", "partitions: 3"),
        },
    ),
    rows(
        "two domains that a file system may take for one",
        names.other_names_differ_by_more_than_case,
        "TOP303",
        "web/b.yaml",
        "name",
        {"Web/a.yaml": topic("a"), "web/b.yaml": topic("b")},
        warns=True,
    ),
    rows(
        "two owners whose names are the same letters, stored in two ways",
        names.other_names_differ_by_more_than_case,
        "TOP303",
        "owners.yaml",
        "te\u00e4m",
        {"web/a.yaml": topic("a"), "owners.yaml": owners("owner: team-web", "owner: tea\u0308m", "owner: te\u00e4m")},
    ),
    rows(
        "after an environment that has no file",
        environments.environments_come_after_others,
        "TOP333",
        "environments/local.yaml",
        "qa",
        {"web/a.yaml": topic("a"), "environments/staging.yaml": STAGING},
        local=policy("after: [staging, qa]"),
    ),
    rows(
        "after itself",
        environments.environments_come_after_others,
        "TOP333",
        "environments/local.yaml",
        "local",
        {"web/a.yaml": topic("a")},
        local=policy("after: [local]"),
    ),
    rows(
        "a circle",
        environments.environments_come_after_others,
        "TOP333",
        "environments/local.yaml",
        "staging",
        {
            "web/a.yaml": topic("a"),
            "environments/staging.yaml": STAGING.replace("{}", "{after: [dev]}"),
            "environments/dev.yaml": STAGING.replace("staging", "dev").replace("{}", "{after: [staging, local]}"),
        },
        local=policy("after: [staging]"),
    ),
    rows(
        "an exception of no code",
        environments.exceptions_are_current,
        "TOP205",
        "environments/local.yaml",
        "TOP999",
        {"web/a.yaml": topic("a")},
        local=policy("exceptions: [{topic: a, code: TOP999, reason: r}]"),
    ),
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("row", ROWS)
def test_a_rule_finds_what_it_is_for(row: Row) -> None:
    found = row.rule(world(Path(), row.files, local=row.local))

    assert [(f.code, f.file, characters(f.file, f.span)) for f in found] == [(row.code, row.file, row.marked)]


@pytest.mark.parametrize("row", ROWS)
def test_nothing_else_is_said_of_it(row: Row) -> None:
    answer = validated(Path(), row.files, local=row.local)

    said = [(d.code, d.severity.value, d.file, characters(d.file, d)) for d in answer.diagnostics]
    assert said == [(row.code, "warning" if row.warns else "error", row.file, row.marked)]


def characters(file: str, place: Span | Diagnostic) -> str:
    assert place.line == place.end_line
    return Path(file).read_text().split("\n")[place.line - 1][place.column - 1 : place.end_column - 1]


def test_every_rule_has_a_row_and_every_row_a_rule_in_force() -> None:
    assert {parameters.values[0].rule for parameters in ROWS} == set(RULES)

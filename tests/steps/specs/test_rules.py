"""One row for each way in which a rule can fail: what is written, and what comes of it, on which characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, LOCAL, PROD, configs, owners, topic, validated, world
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Span
from topicops.steps.specs.rules import RULES, Rule, environments, names, ownership, values
from topicops.steps.specs.rules import configs as config_rules
from topicops.steps.specs.rules import policy as policy_rules

STAGING = LOCAL.replace("local", "staging") + "  policy: {}\n"
KRAFT = LOCAL.replace("sandbox", "sandbox, source: kafka, lease: none")
PRODUCTION = LOCAL.replace("sandbox", 'production, id: x, kafkaVersion: "3.9"')
ENVIRONMENT = "environments/local.yaml"


@dataclass(frozen=True)
class Row:
    name: str
    code: str
    marked: str
    """The characters that the problem is shown on."""
    written: str | Mapping[str, str]
    """Text of the one file, or the text of each of several."""
    file: str = "web/a.yaml"
    """The file that is wrong."""
    local: str = LOCAL
    warns: bool = False

    @property
    def files(self) -> Mapping[str, str]:
        return {self.file: self.written} if isinstance(self.written, str) else self.written


def of_environment(name: str, code: str, marked: str, local: str, *, warns: bool = False) -> Row:
    """A sound topic in an environment that is wrong."""
    return Row(name, code, marked, {"web/a.yaml": topic("a")}, ENVIRONMENT, local, warns)


def named(name: str) -> str:
    return topic(f'"{name}"')


def profile(name: str, spec: str) -> str:
    return HEAD.format(kind="Profile", name=name) + f"  {spec}\n"


def policy(text: str) -> str:
    return f"{LOCAL}  policy: {{{text}}}\n"


def running(version: str, local: str = LOCAL) -> str:
    """The environment, on brokers of this release."""
    return local.replace("sandbox", f'sandbox, kafkaVersion: "{version}"')


def local_airflow(text: str) -> str:
    return f"{LOCAL}  airflow: {text}\n"


def own_rules(*ids: str, holds: str = "owner <> ''") -> str:
    rules = (f'{{id: {name}, level: spec, holds: "{holds}", title: It holds}}' for name in ids)
    return f"{LOCAL}  quality: {{rules: [{', '.join(rules)}]}}\n"


PREFIXED = LOCAL.replace("sandbox,", "sandbox, topics: {prefix: dev.},")


def for_all(text: str) -> str:
    """One rule for all topics."""
    return policy(f"rules: [{{match: {{names: '*'}}, {text}}}]")


def ruled(name: str, marked: str, config: str, rule: str) -> Row:
    """A topic with a config that a rule for all topics forbids."""
    return Row(name, "TOP340", marked, configs(config), local=for_all(f"configs: {{{rule}}}"))


def bad_rule(name: str, code: str, marked: str, rule: str) -> Row:
    return of_environment(name, code, marked, policy(f"rules: [{{{rule}}}]"))


ROWS: Mapping[Rule, Sequence[Row]] = {
    names.names_are_legal: [
        Row("an odd character", "TOP207", '"a b"', named("a b")),
        Row("250 characters", "TOP208", '"' + "a" * 250 + '"', named("a" * 250)),
        Row("two dots", "TOP209", '".."', named("..")),
    ],
    names.files_are_named_after_topics: [
        Row("file and topic", "TOP117", '"b"', named("b")),
        Row(
            "file and profile",
            "TOP117",
            "q",
            {"profiles/p.yaml": profile("q", "partitions: 3")},
            file="profiles/p.yaml",
        ),
    ],
    names.protected_names_stay_out: [
        Row("two underscores", "TOP210", "__a", topic("__a"), file="web/__a.yaml"),
        Row("a pattern of the environment", "TOP210", "a", topic("a"), local=policy('protectedTopics: ["?"]')),
    ],
    names.names_do_not_clash: [
        Row("one name twice", "TOP301", "a", {"shop/a.yaml": topic("a"), "web/a.yaml": topic("a")}),
        Row(
            "one name to Kafka's metrics",
            "TOP302",
            "a_b",
            {"web/a.b.yaml": topic("a.b"), "web/a_b.yaml": topic("a_b")},
            file="web/a_b.yaml",
        ),
        Row(
            "case only",
            "TOP303",
            "orders",
            {"web/Orders.yaml": topic("Orders"), "web/orders.yaml": topic("orders")},
            file="web/orders.yaml",
        ),
        Row(
            "a look-alike",
            "TOP304",
            "payrnents",
            {"web/payments.yaml": topic("payments"), "web/payrnents.yaml": topic("payrnents")},
            file="web/payrnents.yaml",
            warns=True,
        ),
    ],
    config_rules.configs_are_valid: [
        Row("no such config", "TOP305", "retention.mss", configs("retention.mss: 7d")),
        Row("a broker's setting", "TOP305", "log.retention.hours", configs("log.retention.hours: 7")),
        Row("below the range", "TOP306", "-2", configs("retention.ms: -2")),
        Row("an unknown word", "TOP306", "Compact", configs("cleanup.policy: Compact")),
        Row("octal to some", "TOP204", "010", configs("retention.ms: 010")),
        Row("a unit of people", "TOP214", "7 days", configs("retention.ms: 7 days")),
        Row(
            "a value of a profile",
            "TOP306",
            "0",
            {"profiles/p.yaml": profile("p", "configs: {segment.ms: 0}")},
            file="profiles/p.yaml",
        ),
        Row(
            "a value that only a later release takes",
            "TOP306",
            "zstd",
            configs("compression.type: zstd"),
            local=running("2.0"),
        ),
        Row(
            "a value that only an earlier release took",
            "TOP306",
            "1000",
            configs("segment.bytes: 1000"),
            local=running("4.1", KRAFT),
        ),
        Row(
            "a message format that no replica could open",
            "TOP306",
            '"2.5"',
            configs('message.format.version: "2.5"'),
            local=running("1.1"),
        ),
    ],
    config_rules.configs_are_usable: [
        Row(
            "a throttle list",
            "TOP313",
            "leader.replication.throttled.replicas",
            configs('leader.replication.throttled.replicas: "*"'),
        ),
        Row(
            "newer than the cluster",
            "TOP314",
            "compression.gzip.level",
            configs("compression.gzip.level: 9"),
            local=running("3.7"),
        ),
        Row(
            "gone from the cluster",
            "TOP314",
            "message.downconversion.enable",
            configs("message.downconversion.enable: false"),
            local=running("4.0", KRAFT),
        ),
        Row("without effect", "TOP314", "message.format.version", configs("message.format.version: 3.0-IV1")),
        Row(
            "only without ZooKeeper, copy",
            "TOP314",
            "remote.log.copy.disable",
            configs("remote.log.copy.disable: true"),
        ),
        Row(
            "only without ZooKeeper, delete",
            "TOP314",
            "remote.log.delete.on.disable",
            configs("remote.log.delete.on.disable: true"),
        ),
        Row(
            "not on the list",
            "TOP311",
            "segment.ms",
            configs("segment.ms: 1d"),
            local=policy("alterableConfigs: [retention.ms]"),
        ),
    ],
    values.assignments_are_sound: [
        Row("a broker twice", "TOP205", "[1, 1]", topic("a", "spec: {assignment: {0: [1, 1]}}\n")),
        Row(
            "an assignment and a placement",
            "TOP205",
            "kafka",
            topic("a", "spec: {placement: kafka, assignment: {0: [1]}}\n"),
        ),
        Row("numbers and the assignment", "TOP205", "2", topic("a", "spec: {partitions: 2, assignment: {0: [1]}}\n")),
        Row(
            "a number of one environment and the assignment",
            "TOP205",
            "2",
            topic("a", "spec: {assignment: {0: [1]}, overrides: {local: {partitions: 2}}}\n"),
        ),
        Row(
            "a number and an assignment of one environment",
            "TOP205",
            "3",
            topic("a", "spec: {partitions: 2, overrides: {local: {partitions: 3, assignment: {0: [1]}}}}\n"),
        ),
    ],
    values.numbers_are_given: [
        Row(
            "no layer gives it",
            "TOP202",
            "keyed",
            topic("a", "spec: {keyed: true}\n"),
            local=LOCAL.replace("replicationFactor: 3", "configs: {}"),
        )
    ],
    values.partitions_stay_in_the_limit: [
        Row("above the limit", "TOP320", "25", topic("a", "spec: {partitions: 25}\n"))
    ],
    values.replication_is_high_enough: [
        Row(
            "too few replicas",
            "TOP310",
            "2",
            topic("a", "spec: {replicationFactor: 2}\n"),
            local=policy("minReplicationFactor: 3"),
        )
    ],
    config_rules.replicas_in_sync_fit_the_replication: [
        Row("above the replicas", "TOP308", "4", configs("min.insync.replicas: 4")),
        Row("all the replicas", "TOP309", "3", configs("min.insync.replicas: 3"), warns=True),
    ],
    config_rules.compaction_lags_agree: [
        Row("lags crossed", "TOP307", "2h", configs("min.compaction.lag.ms: 2h, max.compaction.lag.ms: 1h"))
    ],
    config_rules.local_retention_fits_the_total: [
        Row(
            "more here than in all, time",
            "TOP315",
            "2d",
            configs("remote.storage.enable: true, local.retention.ms: 2d, retention.ms: 1d"),
        ),
        Row(
            "more here than in all, size",
            "TOP315",
            "-1",
            configs("remote.storage.enable: true, local.retention.bytes: -1, retention.bytes: 1GiB"),
        ),
        Row(
            "more here than in all, before tiered storage was released",
            "TOP315",
            "2d",
            configs("local.retention.ms: 2d, retention.ms: 1d"),
            local=running("3.5"),
        ),
        Row(
            "no limit in all, before tiered storage was released",
            "TOP315",
            "2d",
            configs("local.retention.ms: 2d, retention.ms: -1"),
            local=running("3.0"),
        ),
    ],
    config_rules.local_retention_is_the_total_where_nothing_is_copied: [
        Row(
            "less here and nothing copied",
            "TOP315",
            "50s",
            configs(
                "remote.storage.enable: true, remote.log.copy.disable: true, "
                "local.retention.ms: 50s, retention.ms: 100s"
            ),
            local=KRAFT,
        )
    ],
    config_rules.segments_roll_before_they_expire: [
        Row("older than kept", "TOP316", "7d", configs("segment.ms: 7d, retention.ms: 1d"), warns=True)
    ],
    config_rules.segments_hold_the_largest_batch: [
        Row(
            "smaller than a batch",
            "TOP327",
            "512KiB",
            configs("segment.bytes: 512KiB, max.message.bytes: 1MiB"),
            warns=True,
        )
    ],
    config_rules.small_numbers_have_a_unit: [
        Row("days that are ms", "TOP335", "7", configs("retention.ms: 7"), warns=True),
        Row("mebibytes that are bytes", "TOP335", "500", configs("retention.bytes: 500"), warns=True),
        Row("one second less a millisecond", "TOP335", "999", configs("delete.retention.ms: 999"), warns=True),
    ],
    config_rules.segments_keep_most_of_their_age: [
        Row("jitter above the age", "TOP328", "2h", configs("segment.jitter.ms: 2h, segment.ms: 1h"), warns=True)
    ],
    config_rules.compaction_has_keys: [
        Row("compacted without keys", "TOP323", "compact", configs("cleanup.policy: compact", "keyed: false, "))
    ],
    config_rules.tiered_topics_are_not_compacted: [
        Row("tiered and compacted", "TOP324", "true", configs("remote.storage.enable: true, cleanup.policy: compact"))
    ],
    config_rules.unclean_elections_are_noticed: [
        Row("an unclean election", "TOP312", "true", configs("unclean.leader.election.enable: true"), warns=True)
    ],
    values.lifecycles_are_complete: [
        Row("no spec", "TOP202", "", topic("a", "")),
        Row("a tombstone without a reason", "TOP322", "state", topic("a", "lifecycle: {state: absent}\n")),
        Row(
            "a tombstone with a spec", "TOP322", "spec", topic("a", "lifecycle: {state: absent, reason: r}\nspec: {}\n")
        ),
        Row(
            "a pause without an end", "TOP322", "state", topic("a", "spec: {}\nlifecycle: {state: paused, reason: r}\n")
        ),
        Row(
            "a pause that is over",
            "TOP322",
            "2030-01-01T00:00:00Z",
            topic("a", "spec: {}\nlifecycle: {state: paused, reason: r, until: 2030-01-01T00:00:00Z}\n"),
            warns=True,
        ),
        Row(
            "a field of a pause in a tombstone",
            "TOP201",
            "until",
            topic("a", "lifecycle: {state: absent, reason: r, until: 2031-01-01T00:00:00Z}\n"),
        ),
        Row(
            "a field of a tombstone in a pause",
            "TOP201",
            "topicIds",
            topic("a", "spec: {}\nlifecycle: {state: paused, reason: r, until: 2031-01-01T00:00:00Z, topicIds: {}}\n"),
        ),
    ],
    names.names_fit_behind_the_prefix: [
        Row(
            "too long behind the prefix",
            "TOP208",
            "a" * 247,
            {f"web/{'a' * 247}.yaml": topic("a" * 247)},
            file=f"web/{'a' * 247}.yaml",
            local=PREFIXED,
        )
    ],
    environments.environments_of_one_cluster_share_no_names: [
        Row(
            "a prefix that begins with the other",
            "TOP339",
            "dev.",
            {"environments/eu.yaml": PREFIXED.replace("name: local", "name: eu").replace("dev.", "dev.eu.")},
            file="environments/local.yaml",
            local=PREFIXED,
        ),
        Row(
            "a prefix beside an environment that looks at all topics",
            "TOP339",
            "dev.",
            {"environments/all.yaml": LOCAL.replace("name: local", "name: all")},
            file="environments/local.yaml",
            local=PREFIXED,
        ),
    ],
    ownership.profiles_exist: [Row("no such profile", "TOP318", "p", topic("a", "spec: {profile: p}\n"))],
    ownership.overrides_have_topics: [
        of_environment("an override of nothing", "TOP319", "b", LOCAL + "  overrides: {b: {partitions: 4}}\n")
    ],
    environments.production_names_its_cluster: [
        of_environment(
            "production without an id", "TOP325", "class", LOCAL.replace("sandbox", 'production, kafkaVersion: "3.9"')
        )
    ],
    environments.addresses_are_given: [
        of_environment(
            "an address of ZooKeeper is missing", "TOP325", "class", LOCAL.replace("zookeeper: {hosts: zk}, ", "")
        ),
        of_environment(
            "an address of the brokers is missing",
            "TOP325",
            "{applier: x}",
            LOCAL.replace("{bootstrapServers: b}", "{applier: x}"),
        ),
    ],
    environments.leases_can_be_had: [
        of_environment(
            "brokers as the source, and a lease in ZooKeeper",
            "TOP325",
            "zookeeper",
            LOCAL.replace("sandbox", "sandbox, source: kafka, lease: zookeeper"),
        )
    ],
    environments.releases_are_supported: [
        of_environment(
            "a version that is none", "TOP205", "newest", LOCAL.replace("sandbox", "sandbox, kafkaVersion: newest")
        ),
        of_environment("a release before the oldest", "TOP205", '"0.11"', running("0.11")),
        of_environment("a release that has no ZooKeeper", "TOP325", '"4.1"', running("4.1")),
        Row(
            "a release after the newest",
            "TOP334",
            '"99.9"',
            {"web/a.yaml": configs("retention.ms: 1d")},
            file=ENVIRONMENT,
            local=running("99.9", KRAFT),
            warns=True,
        ),
        of_environment(
            "production without a release", "TOP334", "class", LOCAL.replace("sandbox", "production, id: x"), warns=True
        ),
    ],
    environments.production_needs_a_second_person: [
        Row(
            "an approval by parameter in production",
            "TOP338",
            "[question, parameter]",
            {},
            file=ENVIRONMENT,
            local=PRODUCTION + "  policy: {approvals: [question, parameter]}\n",
            warns=True,
        ),
        Row(
            "an author who approves alone in production",
            "TOP338",
            "risky",
            {},
            file=ENVIRONMENT,
            local=PRODUCTION + "  policy: {approvals: [question], authorApproves: risky}\n",
            warns=True,
        ),
    ],
    environments.exceptions_are_current: [
        of_environment(
            "an exception that is over",
            "TOP326",
            "2030-01-31T12:00:00Z",
            policy("exceptions: [{topic: a, code: TOP320, reason: r, until: 2030-01-31T12:00:00Z}]"),
            warns=True,
        ),
        of_environment(
            "an exception of no code", "TOP205", "TOP999", policy("exceptions: [{topic: a, code: TOP999, reason: r}]")
        ),
    ],
    environments.airflow_takes_schedules_and_owner: [
        of_environment(
            "a schedule that is none",
            "TOP205",
            "every 7m",
            local_airflow("{schedule: every 7m, driftSchedule: '@daily'}"),
        ),
        of_environment(
            "two owners in one name",
            "TOP205",
            "'a, b'",
            local_airflow("{owner: 'a, b', ownerLink: 'mailto:kafka@example.com'}"),
        ),
        of_environment(
            "a link that Airflow does not take",
            "TOP205",
            "'http:///kafka'",
            local_airflow("{owner: kafka, ownerLink: 'http:///kafka'}"),
        ),
    ],
    ownership.names_fit_the_pattern: [
        of_environment("an expression that is none", "TOP205", '"(?=a).*"', policy('namePattern: "(?=a).*"')),
        Row("another name", "TOP329", "a", topic("a"), local=policy('namePattern: "[b-z]|aa"')),
    ],
    ownership.required_labels_are_given: [
        Row(
            "a label that is not there",
            "TOP330",
            "tier",
            topic("a", metadata=", labels: {tier: x}"),
            local=policy("requiredLabels: [tier, cost]"),
        ),
        Row("no labels", "TOP330", "name", topic("a"), local=policy("requiredLabels: [tier]")),
    ],
    ownership.owners_may_have_topics: [
        Row(
            "an owner that is not allowed",
            "TOP331",
            "team-web",
            topic("a"),
            local=policy('allowedOwners: [team-shop, "*-data"]'),
        ),
        Row(
            "an owner that is not listed",
            "TOP331",
            "team-web",
            {"web/a.yaml": topic("a"), "owners.yaml": owners("owner: team-shop")},
        ),
        Row(
            "an owner that is listed for another environment",
            "TOP331",
            "team-web",
            {**PROD, "web/a.yaml": topic("a"), "owners.yaml": owners("owner: team-web, environments: [prod]")},
        ),
    ],
    ownership.names_belong_to_their_owners: [
        Row(
            "another owner's name",
            "TOP332",
            "a.b",
            {"web/a.b.yaml": topic("a.b"), "owners.yaml": owners("owner: team-web", 'owner: team-a, topics: ["a.*"]')},
            file="web/a.b.yaml",
        )
    ],
    ownership.budgets_hold: [
        Row(
            "too many replicas of one owner",
            "TOP321",
            "17",
            {
                "web/a.yaml": topic("a"),
                "web/b.yaml": topic("b"),
                "owners.yaml": owners("owner: team-web, partitions: 6, replicas: 17"),
            },
            file="owners.yaml",
        )
    ],
    ownership.environments_exist: [
        Row(
            "an environment that has no file", "TOP336", "locla", topic("a", metadata=", environments: [local, locla]")
        ),
        Row(
            "an override of an environment that the topic is not for",
            "TOP336",
            "local",
            {**PROD, "web/a.yaml": topic("a", "spec: {overrides: {local: {}}}\n", metadata=", environments: [prod]")},
            file="web/a.yaml",
        ),
        Row(
            "the id of a topic in an environment that has no file",
            "TOP336",
            "Local",
            topic("a", f"lifecycle: {{state: absent, reason: gone, topicIds: {{Local: {'A' * 22}}}}}\n"),
        ),
        Row(
            "an owner in an environment that has no file",
            "TOP336",
            "qa",
            {"web/a.yaml": topic("a"), "owners.yaml": owners("owner: team-web, environments: [local, qa]")},
            file="owners.yaml",
        ),
    ],
    ownership.exceptions_have_topics: [
        of_environment(
            "an exception for no topic", "TOP337", "aa", policy("exceptions: [{topic: aa, code: TOP320, reason: r}]")
        )
    ],
    ownership.alterable_configs_exist: [
        of_environment(
            "a config that may change and that Kafka does not have",
            "TOP305",
            "retention",
            policy("alterableConfigs: [retention.ms, retention]"),
        )
    ],
    names.other_names_differ_by_more_than_case: [
        Row(
            "two profiles that a file system may take for one",
            "TOP303",
            "name",
            {
                "profiles/Long.yaml": profile("Long", "partitions: 3"),
                "profiles/long.yaml": profile("long", "partitions: 3"),
            },
            file="profiles/long.yaml",
        ),
        Row(
            "two domains that a file system may take for one",
            "TOP303",
            "name",
            {"Web/a.yaml": topic("a"), "web/b.yaml": topic("b")},
            file="web/b.yaml",
            warns=True,
        ),
        Row(
            "two owners whose names are the same letters, stored in two ways",
            "TOP303",
            "te\u00e4m",
            {
                "web/a.yaml": topic("a"),
                "owners.yaml": owners("owner: team-web", "owner: tea\u0308m", "owner: te\u00e4m"),
            },
            file="owners.yaml",
        ),
    ],
    policy_rules.topics_fit_the_rules: [
        ruled("a config above the highest", "31d", "retention.ms: 31d", "retention.ms: {min: 1d, max: 30d}"),
        ruled("a config below the lowest", "1h", "retention.ms: 1h", "retention.ms: {min: 1d, max: 30d}"),
        ruled("no limit is above each highest", "-1", "retention.bytes: -1", "retention.bytes: {max: 1TiB}"),
        ruled("a total that no file gives", "-2", "local.retention.ms: -2", "local.retention.ms: {max: 1d}"),
        ruled("another word", "compact", "cleanup.policy: compact", "cleanup.policy: {oneOf: [delete]}"),
        ruled(
            "one word more", '"compact,delete"', 'cleanup.policy: "compact,delete"', "cleanup.policy: {oneOf: [delete]}"
        ),
        ruled("a config that no layer gives", "configs", "segment.ms: 1h", "retention.ms: {required: true}"),
        ruled("a config that is taken out", "null", "retention.ms: null", "retention.ms: {required: true}"),
        of_environment("partitions of the defaults", "TOP340", "3", for_all("partitions: {max: 2}")),
        Row(
            "replicas of an owner's topic",
            "TOP340",
            "1",
            topic("a", "spec: {replicationFactor: 1}\n"),
            local=policy('rules: [{match: {owners: ["team-w*"]}, replicationFactor: {min: 2}}]'),
        ),
    ],
    policy_rules.rules_can_be_judged: [
        bad_rule("a match of nothing", "TOP202", "{}", "match: {}, partitions: {max: 3}"),
        bad_rule("a match of the empty name", "TOP202", '{names: ""}', 'match: {names: ""}, partitions: {max: 3}'),
        bad_rule("a rule without a limit", "TOP202", "match", 'match: {names: "*"}, partitions: {}'),
        bad_rule(
            "a config that Kafka lacks", "TOP305", "retenton.ms", "match: {names: a}, configs: {retenton.ms: {max: 1}}"
        ),
        bad_rule(
            "a config that does nothing",
            "TOP314",
            "message.format.version",
            "match: {names: a}, configs: {message.format.version: {oneOf: ['3.0']}}",
        ),
        bad_rule(
            "a range that is empty", "TOP205", "2d", "match: {names: a}, configs: {retention.ms: {min: 2d, max: 1d}}"
        ),
        bad_rule(
            "no limit as the lowest", "TOP205", "-1", "match: {names: a}, configs: {retention.ms: {min: -1, max: 1d}}"
        ),
        bad_rule("a range of numbers", "TOP205", "9", "match: {names: aa}, partitions: {min: 9, max: 3}"),
        bad_rule("a range of words", "TOP205", "delete", "match: {names: a}, configs: {cleanup.policy: {max: delete}}"),
        bad_rule("no value", "TOP205", "[]", "match: {names: a}, configs: {cleanup.policy: {oneOf: []}}"),
        bad_rule(
            "a value without sense", "TOP306", "keep", "match: {names: a}, configs: {cleanup.policy: {oneOf: [keep]}}"
        ),
        bad_rule(
            "a value with another unit", "TOP214", "7 days", "match: {names: a}, configs: {retention.ms: {max: 7 days}}"
        ),
        Row(
            "an owner that there is not",
            "TOP205",
            "tem-web",
            {"web/a.yaml": topic("a"), "owners.yaml": owners("owner: team-web")},
            ENVIRONMENT,
            policy("rules: [{match: {owners: [tem-web]}, partitions: {max: 3}}]"),
        ),
    ],
    environments.environments_come_after_others: [
        Row(
            "after an environment that has no file",
            "TOP333",
            "qa",
            {"web/a.yaml": topic("a"), "environments/staging.yaml": STAGING},
            file=ENVIRONMENT,
            local=policy("after: [staging, qa]"),
        ),
        of_environment("after itself", "TOP333", "local", policy("after: [local]")),
        Row(
            "a circle",
            "TOP333",
            "staging",
            {
                "web/a.yaml": topic("a"),
                "environments/staging.yaml": STAGING.replace("{}", "{after: [dev]}"),
                "environments/dev.yaml": STAGING.replace("staging", "dev").replace("{}", "{after: [staging, local]}"),
            },
            file=ENVIRONMENT,
            local=policy("after: [staging]"),
        ),
    ],
    environments.own_rules_can_be_judged: [
        of_environment("an id with a capital letter", "TOP205", "Mine", own_rules("Mine")),
        of_environment("the id of a rule twice", "TOP205", "mine", own_rules("mine", "mine")),
        of_environment("a column that there is not", "TOP205", '"owners"', own_rules("mine", holds="owners")),
        of_environment(
            "conditions in SQL without Spark", "TOP205", "python", own_rules("mine") + "  airflow: {engine: python}\n"
        ),
    ],
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("rule", "row"), [pytest.param(rule, row, id=row.name) for rule, rows in ROWS.items() for row in rows]
)
def test_a_rule_finds_what_it_is_for(rule: Rule, row: Row) -> None:
    found = rule(world(Path(), row.files, local=row.local))

    assert [(f.code, f.file, characters(f.file, f.span)) for f in found] == [(row.code, row.file, row.marked)]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for rows in ROWS.values() for row in rows])
def test_nothing_else_is_said_of_it(row: Row) -> None:
    answer = validated(Path(), row.files, local=row.local)

    said = [(d.code, d.severity.value, d.file, characters(d.file, d)) for d in answer.diagnostics]
    assert said == [(row.code, "warning" if row.warns else "error", row.file, row.marked)]


def characters(file: str, place: Span | Diagnostic) -> str:
    assert place.line == place.end_line
    return Path(file).read_text().split("\n")[place.line - 1][place.column - 1 : place.end_column - 1]


def test_every_rule_has_a_row_and_every_row_a_rule_in_force() -> None:
    assert set(ROWS) == set(RULES)


@pytest.mark.parametrize(("word", "meant"), [("Yes", "true"), ("on", "true"), ("NO", "false"), ("off", "false")])
def test_a_word_of_yaml_1_1_is_refused_with_the_boolean_that_it_means(word: str, meant: str, tmp_path: Path) -> None:
    found = validated(tmp_path, {"web/a.yaml": topic("a", f"spec: {{rackAware: {word}}}\n")}).diagnostics

    assert [(each.summary, each.help) for each in found] == [(f"{word} is text to some tools", f"write {meant}")]

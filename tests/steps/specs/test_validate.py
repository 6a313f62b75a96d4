"""From nodes to desired topics, and the rules that the case table does not reach."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, LOCAL, NOW, PROD, topic, validated, write
from topicops.edges.specs.reader import read_tree
from topicops.model.errors import SpecError, UsageError
from topicops.model.specs.desired import Desired, Lifecycle
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Risk
from topicops.steps.specs.validate import Validated, validate, validate_each


def found(answer: Validated) -> list[tuple[str, str, str, int]]:
    return [(d.code, d.severity.value, Path(d.file).name, d.line) for d in answer.diagnostics]


def desired(answer: Validated) -> Desired:
    return answer.require()[1]


# ---- layers ----


def test_later_layers_win_and_only_configs_merge_by_key(tmp_path: Path) -> None:
    local = LOCAL.replace("replicationFactor: 3}", "replicationFactor: 3, configs: {retention.ms: 1d, segment.ms: 1h}}")
    local += "  overrides:\n    web.clicks: {partitions: 12, configs: {compression.type: zstd}}\n"
    profile = HEAD.format(kind="Profile", name="p") + "  partitions: 6\n  configs: {retention.ms: 2d}\n"
    spec = "spec:\n  profile: p\n  replicationFactor: 2\n  configs: {segment.ms: null}\n"

    answer = validated(
        tmp_path, {"profiles/p.yaml": profile, "web/web.clicks.yaml": topic("web.clicks", spec)}, local=local
    )

    clicks = desired(answer).topics["web.clicks"]
    assert (clicks.partitions, clicks.replication_factor) == (12, 2)
    assert clicks.configs == {"compression.type": "zstd", "retention.ms": "172800000", "segment.ms": None}
    assert Path(clicks.location_of("partitions").file).name == "local.yaml"
    assert Path(clicks.location_of("configs.retention.ms").file).name == "p.yaml"
    assert Path(clicks.location_of("replicationFactor").file).name == "web.clicks.yaml"


def test_a_topics_own_override_of_an_environment_lies_between_the_topic_and_the_environment(tmp_path: Path) -> None:
    local = LOCAL + "  overrides:\n    orders: {configs: {compression.type: zstd}}\n"
    spec = (
        "spec:\n  partitions: 6\n  configs: {retention.ms: 7d, segment.ms: 1h}\n  overrides:\n"
        "    local: {partitions: 12, configs: {retention.ms: 30d, compression.type: gzip, segment.ms: null}}\n"
        "    prod: {replicationFactor: 2}\n"
    )

    answer = desired(validated(tmp_path, {"web/orders.yaml": topic("orders", spec), **PROD}, local=local))

    orders = answer.topics["orders"]
    assert (orders.partitions, orders.replication_factor) == (12, 3)
    assert orders.configs == {"compression.type": "zstd", "retention.ms": "2592000000", "segment.ms": None}
    places = {name: (Path(at.file).name, at.line) for name, at in orders.locations.items()}
    assert places["partitions"] == places["configs.retention.ms"] == ("orders.yaml", 8)
    assert places["configs.compression.type"][0] == "local.yaml"
    assert "overrides" not in places


def test_an_assignment_of_one_environment_gives_its_partitions_and_replicas(tmp_path: Path) -> None:
    spec = 'spec:\n  partitions: 6\n  overrides: {local: {assignment: "1:2,2:1"}}\n'

    labels = desired(validated(tmp_path, {"web/labels.yaml": topic("labels", spec)})).topics["labels"]

    assert (labels.partitions, labels.replication_factor) == (2, 2)
    assert labels.assignment == {0: (1, 2), 1: (2, 1)}
    assert labels.location_of("assignment").line == 6


def test_a_topic_of_another_environment_is_left_out_and_so_are_a_tombstone_and_a_pause(tmp_path: Path) -> None:
    elsewhere = ", environments: [prod]"
    pause = "spec: {}\nlifecycle: {state: paused, reason: r, until: 2031-01-01T00:00:00Z}\n"
    files = {
        "web/here.yaml": topic("here", metadata=", environments: [local]"),
        "web/there.yaml": topic("there", metadata=elsewhere),
        "web/old.yaml": topic("old", "lifecycle: {state: absent, reason: r}\n", metadata=elsewhere),
        "web/rest.yaml": topic("rest", pause, metadata=elsewhere),
        **PROD,
    }

    assert list(desired(validated(tmp_path, files)).topics) == ["here"]


@pytest.mark.parametrize("written", ["{1: [2, 1], 0: [1, 2]}", '"1:2,2:1"'], ids=["rows", "Kafka's own text"])
def test_an_assignment_gives_partitions_and_replicas_whatever_the_layers_say(tmp_path: Path, written: str) -> None:
    spec = f"spec: {{assignment: {written}}}\n"

    labels = desired(validated(tmp_path, {"web/labels.yaml": topic("labels", spec)})).topics["labels"]

    assert (labels.partitions, labels.replication_factor) == (2, 2)
    assert labels.assignment == {0: (1, 2), 1: (2, 1)}


def test_the_prefix_of_an_environment_comes_before_each_name_of_a_file(tmp_path: Path) -> None:
    local = LOCAL.replace("sandbox,", "sandbox, topics: {prefix: dev.},") + "  overrides: {orders: {partitions: 9}}\n"
    files = {"shop/orders.yaml": topic("orders"), "shop/bills.yaml": topic("bills", "spec: {partitions: x}\n")}

    write(tmp_path, files, local=local)
    answer = validate(read_tree(tmp_path), environment="local", now=NOW, needs="dev.orders".__eq__)

    assert {name: found.partitions for name, found in desired(answer).topics.items()} == {"dev.orders": 9}
    assert (desired(answer).left_out, desired(answer).prefix) == ({"dev.bills"}, "dev.")
    assert validate(read_tree(tmp_path), environment="local", now=NOW, needs="dev.bills".__eq__).has_errors
    environment, _ = answer.require()
    assert environment.protecting_pattern("test.orders") == "not dev.*"
    assert environment.protecting_pattern("dev.orders") is None


# ---- lifecycles ----


def test_a_tombstone_carries_reason_time_and_the_id_of_this_environment(tmp_path: Path) -> None:
    here, there = "A" * 22, "bE9-_" * 4 + "xx"
    body = (
        "lifecycle: {state: absent, reason: gone, notBefore: 2029-01-01T00:00:00Z, "
        f"topicIds: {{local: {here}, prod: {there}}}}}\n"
    )

    old = desired(validated(tmp_path, {**PROD, "web/old.yaml": topic("old", body)})).topics["old"]

    assert (old.lifecycle, old.reason, old.topic_id) == (Lifecycle.ABSENT, "gone", here)
    assert old.not_before == datetime(2029, 1, 1, tzinfo=UTC)
    assert (old.partitions, dict(old.configs)) == (0, {})


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        pytest.param("2030-03-01T00:00:00Z", [], id="long to go"),
        pytest.param("2030-02-05T00:00:00Z", [("TOP322", "warning", "a.yaml", 5)], id="ends within a week"),
        pytest.param("2030-01-31T12:00:00Z", [("TOP322", "warning", "a.yaml", 5)], id="over"),
    ],
)
def test_a_pause_warns_before_and_after_its_end_and_stops_nothing(
    until: str, expected: list[tuple[str, str, str, int]], tmp_path: Path
) -> None:
    body = f"spec: {{}}\nlifecycle: {{state: paused, reason: moving, until: {until}}}\n"

    answer = validated(tmp_path, {"web/a.yaml": topic("a", body)})

    assert found(answer) == expected
    assert desired(answer).topics["a"].lifecycle is Lifecycle.PAUSED
    assert len(desired(answer).warnings) == len(expected)


# ---- exceptions ----

WIDE = {"web/wide.yaml": topic("wide", "spec: {partitions: 25}\n")}


def exceptions_file(until: str) -> str:
    return HEAD.format(kind="Exceptions", name="local") + (
        f"  exceptions:\n    - {{topic: wide, code: TOP320, reason: imported, until: {until}}}\n"
    )


def test_an_exception_of_the_environments_own_file_makes_a_warning_of_the_error(tmp_path: Path) -> None:
    files = {**WIDE, "environments/local.exceptions.yaml": exceptions_file("2031-01-01T00:00:00Z")}

    answer = validated(tmp_path, files)

    assert found(answer) == [("TOP320", "warning", "wide.yaml", 4)]
    assert [e.topic for e in answer.require()[0].spec.policy.exceptions] == ["wide"]


def test_an_exception_that_is_over_no_longer_applies_and_says_so(tmp_path: Path) -> None:
    files = {**WIDE, "environments/local.exceptions.yaml": exceptions_file("2030-01-01T00:00:00Z")}

    assert found(validated(tmp_path, files)) == [
        ("TOP326", "warning", "local.exceptions.yaml", 6),
        ("TOP320", "error", "wide.yaml", 4),
    ]


def test_a_value_that_two_topics_share_is_an_error_unless_both_have_an_exception(tmp_path: Path) -> None:
    profile = HEAD.format(kind="Profile", name="p") + "  partitions: 25\n"
    files = {
        "profiles/p.yaml": profile,
        "web/wide.yaml": topic("wide", "spec: {profile: p}\n"),
        "web/wider.yaml": topic("wider", "spec: {profile: p}\n"),
        "environments/local.exceptions.yaml": exceptions_file("2031-01-01T00:00:00Z"),
    }

    assert found(validated(tmp_path, files)) == [("TOP320", "error", "p.yaml", 5)]


@pytest.mark.parametrize("code", ["TOP999", "320"])
def test_an_exception_names_a_code_that_exists(code: str, tmp_path: Path) -> None:
    text = exceptions_file("2031-01-01T00:00:00Z").replace("TOP320", code)

    answer = validated(tmp_path, {"web/wide.yaml": topic("wide"), "environments/local.exceptions.yaml": text})

    assert found(answer) == [("TOP205", "error", "local.exceptions.yaml", 6)]


# ---- what cannot be known is not guessed ----


@pytest.mark.parametrize(
    ("files", "local", "codes"),
    [
        pytest.param(
            {
                "profiles/p.yaml": "spec: [\n",
                "web/a.yaml": topic("a", "spec: {profile: p, partitions: 900, configs: {retention.ms: x}}\n"),
            },
            LOCAL,
            ["TOP106", "TOP306"],
            id="a profile hides no other problem and makes none",
        ),
        pytest.param(
            {"web/a.yaml": topic("a", "spec: {partitions: 900}\n")},
            LOCAL.replace("partitionsPerTopic: 24", "partitionsPerTopic: lots"),
            ["TOP203"],
            id="a limit limits nothing",
        ),
        pytest.param(
            {"web/a.yaml": topic("a", "spec: {overrides: {local: 12}}\n")},
            LOCAL.replace("replicationFactor: 3", ""),
            ["TOP203"],
            id="an override gives what it may give",
        ),
        pytest.param(
            {"web/a.yaml": "{\n"},
            LOCAL + "  overrides: {a: {partitions: 4}}\n",
            ["TOP106"],
            id="a topic that has an override is not unknown",
        ),
    ],
)
def test_of_what_cannot_be_read_nothing_else_is_said(
    tmp_path: Path, files: dict[str, str], local: str, codes: list[str]
) -> None:
    assert [code for code, *_ in found(validated(tmp_path, files, local=local))] == codes


# ---- names ----


def test_names_clash_only_where_both_topics_are(tmp_path: Path) -> None:
    files = {
        "web/a.b.yaml": topic("a.b", metadata=", environments: [local]"),
        "web/a_b.yaml": topic("a_b", metadata=", environments: [prod]"),
        **PROD,
    }

    assert found(validated(tmp_path, files)) == []


def test_every_clash_of_three_names_is_shown_once(tmp_path: Path) -> None:
    files = {f"web/{name}.yaml": topic(name) for name in ("a.b", "a_b", "A.b")}

    assert found(validated(tmp_path, files)) == [
        ("TOP303", "error", "a.b.yaml", 3),
        ("TOP302", "error", "a_b.yaml", 3),
        ("TOP304", "warning", "a_b.yaml", 3),
    ]


# ---- environments ----


def test_without_a_name_every_environment_is_judged(tmp_path: Path) -> None:
    strict = LOCAL.replace("name: local", "name: strict").replace("PerTopic: 24", "PerTopic: 2")
    files = {"environments/strict.yaml": strict, "web/a.yaml": topic("a")}

    answer = validated(tmp_path, files, environment=None)

    assert found(answer) == [("TOP320", "error", "strict.yaml", 6)]
    assert (answer.environment, answer.desired) == (None, None)


def test_an_environment_that_is_not_there_is_one_sentence_with_the_names_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'lokal'; in environments/ there are: local"):
        validated(tmp_path, {}, environment="lokal")


def test_an_environment_knows_where_each_value_stands(tmp_path: Path) -> None:
    local = LOCAL + "  policy: {unattended: risky}\n  verify: {isr: 2m}\n"

    environment, _ = validated(tmp_path, {}, local=local).require()

    assert environment.spec.policy.unattended is Risk.RISKY
    assert environment.spec.verify.isr.total_seconds() == 120
    assert environment.locations["limits.partitionsPerTopic"] == Location(environment.file, 8, 25)
    assert environment.place_of("limits.deletesPerRun") == "limits.deletesPerRun, by default"


# ---- a bad file of one environment stops that environment, and is a warning for the others ----

(OTHER,) = PROD.values()


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        pytest.param("prod.yaml", OTHER + "  limts: {}\n", "TOP201", id="an unknown field"),
        pytest.param("prod.yaml", "[", "TOP106", id="no YAML"),
        pytest.param("prod.yaml", OTHER.replace("name: prod", "name: other"), "TOP117", id="another name"),
        pytest.param("prod eu.yaml", OTHER, "TOP116", id="a name that no file may have"),
        pytest.param("prod.yml", OTHER, "TOP118", id="another extension"),
        pytest.param("prod.exceptions.yaml", HEAD.format(kind="Topic", name="prod"), "TOP206", id="of its exceptions"),
    ],
)
def test_a_bad_file_of_another_environment_is_a_warning_that_names_it(
    file: str, text: str, code: str, tmp_path: Path
) -> None:
    files = {**PROD, "web/a.yaml": topic("a"), f"environments/{file}": text}
    if file == "prod.yml":
        del files["environments/prod.yaml"]

    for_local = validated(tmp_path, files, environment="local")
    for_all = validated(tmp_path, files, environment=None)

    found = [problem for problem in for_local.diagnostics if problem.code == code]
    assert found
    assert all(not problem.is_error for problem in for_local.diagnostics)
    assert all(f"environments/{file}" in problem.file and "alone" in problem.summary for problem in found)
    assert for_local.require()[1].topics.keys() == {"a"}
    assert for_all.has_errors


def test_a_bad_file_stops_its_own_environment(tmp_path: Path) -> None:
    files = {"environments/prod.yaml": OTHER + "  limts: {}\n", "web/a.yaml": topic("a")}

    assert validated(tmp_path, files, environment="prod").has_errors


def test_an_error_of_a_topic_stops_every_environment(tmp_path: Path) -> None:
    files = {**PROD, "web/a.yaml": topic("a", "spec: {partitions: few}\n")}

    assert validated(tmp_path, files, environment="local").has_errors


# ---- the answer ----


def test_errors_leave_nothing_to_plan_with(tmp_path: Path) -> None:
    answer = validated(tmp_path, {"web/a.yaml": topic("b")})

    with pytest.raises(SpecError) as caught:
        answer.require()
    assert caught.value.diagnostics == answer.diagnostics
    assert (answer.environment, answer.desired) == (None, None)


def test_the_digest_follows_the_meaning_and_not_the_writing(tmp_path: Path) -> None:
    one = {
        "web/a.yaml": topic("a", "spec:\n  partitions: 3\n  configs: {retention.ms: 7d, cleanup.policy: delete}\n"),
        "web/b.yaml": topic("b"),
    }
    other = {
        "shop/b.yaml": topic("b"),
        "logs/a.yaml": topic(
            "a", "spec: {configs: {cleanup.policy: ' delete ', retention.ms: 604800000}} # a comment\n"
        ),
    }

    first, second = validated(tmp_path / "one", one), validated(tmp_path / "other", other)

    assert desired(first).digest == desired(second).digest


def test_the_digest_changes_with_the_meaning(tmp_path: Path) -> None:
    first = validated(tmp_path / "one", {"web/a.yaml": topic("a")})
    second = validated(tmp_path / "other", {"web/a.yaml": topic("a", "spec: {keyed: false}\n")})

    assert desired(first).digest != desired(second).digest


def test_a_folder_without_topics_is_a_fine_start(tmp_path: Path) -> None:
    assert dict(desired(validated(tmp_path, {})).topics) == {}


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("replicas: 3", "did you mean replicationFactor?"),
        ("replication_factor: 3", "did you mean replicationFactor?"),
        ("config: {}", "did you mean configs?"),
        ("partition: 3", "did you mean partitions?"),
        ("retention.ms: 1", "a topic's config goes below configs, as configs: {retention.ms: …}"),
        ("replication.factor: 3", "did you mean replicationFactor?"),
        ("num.partitions: 3", "did you mean partitions?"),
        ("properties: {}", "did you mean configs?"),
        ("replica_assignment: '1'", "did you mean assignment?"),
        ("owner: me", "it belongs to metadata"),
        ("topic: a", "it belongs to metadata, as name"),
        ("team: a", "it belongs to metadata, as owner"),
        ("cleanup_policy: compact", "a topic's config goes below configs, as cleanup.policy"),
        ("retentionMs: 1", "a topic's config goes below configs, as retention.ms"),
        ("until: x", "it belongs to lifecycle"),
    ],
)
def test_a_word_of_another_tool_gets_a_hint(written: str, hint: str, tmp_path: Path) -> None:
    answer = validated(tmp_path, {"web/a.yaml": topic("a", f"spec: {{{written}}}\n")})

    assert [(d.code, d.help) for d in answer.diagnostics] == [("TOP201", hint)]


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("topic: a", "did you mean metadata?"),
        ("partitions: 3", "it belongs to spec"),
        ("config: {}", "it belongs to spec, as configs"),
        ("tags: {}", "it belongs to metadata, as labels"),
        ("state: absent", "it belongs to lifecycle"),
        ("nonsense: 1", "known here: apiVersion, kind, metadata, spec, lifecycle"),
    ],
)
def test_a_word_in_the_wrong_place_gets_a_hint(written: str, hint: str, tmp_path: Path) -> None:
    answer = validated(tmp_path, {"web/a.yaml": f"{topic('a')}{written}\n"})

    assert [(d.code, d.help) for d in answer.diagnostics] == [("TOP201", hint)]


# ---- the same for fields of any environment ----


def test_a_config_only_for_kraft_may_stand_where_brokers_are_read_instead_of_zookeeper(tmp_path: Path) -> None:
    files = {"web/a.yaml": topic("a", "spec: {configs: {remote.log.delete.on.disable: true}}\n")}
    local = LOCAL.replace("sandbox", "sandbox, source: {}, lease: none")

    codes = {
        source: [d.code for d in validated(tmp_path, files, local=local.replace("{}", source)).diagnostics]
        for source in ("zookeeper", "kafka", "elsewhere")
    }

    assert codes == {"zookeeper": ["TOP314"], "kafka": [], "elsewhere": ["TOP205"]}


@pytest.mark.parametrize(
    ("environments", "severity"),
    [
        pytest.param("[local]", "warning", id="the topics are in one environment"),
        pytest.param("[local, other]", "error", id="they are in another one too, which excuses nothing"),
    ],
)
def test_a_clash_is_excused_by_the_environments_that_the_topics_are_in(
    environments: str, severity: str, tmp_path: Path
) -> None:
    files = {
        **{f"a/{name}.yaml": topic(name, metadata=f", environments: {environments}") for name in ("a.b", "a_b")},
        "environments/other.yaml": LOCAL.replace("name: local", "name: other"),
        "environments/local.exceptions.yaml": HEAD.format(kind="Exceptions", name="local")
        + "  exceptions: [{topic: a_b, code: TOP302, reason: Both are there.}]\n",
    }

    for environment in (None, "other"):
        assert found(validated(tmp_path, files, environment=environment)) == [("TOP302", severity, "a_b.yaml", 3)]
    assert found(validated(tmp_path, files)) == [("TOP302", "warning", "a_b.yaml", 3)]


# ---- many environments ----


def test_many_environments_are_judged_at_once_as_each_alone(tmp_path: Path) -> None:
    pause = "lifecycle: {state: paused, reason: Wait., until: 2030-02-01T00:00:00Z}\n"
    prod = LOCAL.replace("local", "prod").replace("Factor: 3", "Factor: 2")
    files = {
        "web/here.yaml": topic("here", metadata=", environments: [local]"),
        "web/there.yaml": topic("there", metadata=", environments: [prod, odd]"),
        "web/everywhere.yaml": topic("everywhere", pause + "spec: {partitions: 30}\n"),
        "environments/prod.yaml": prod.replace("    partitionsPerTopic: 24\n", "    partitionsPerTopic: 50\n"),
        "environments/prod.exceptions.yaml": HEAD.format(kind="Exceptions", name="prod")
        + "  exceptions: [{topic: there, code: TOP302, reason: So it is.}]\n",
        "environments/odd.yaml": "kind: Nonsense\n",
    }
    write(tmp_path, files)
    tree, named = read_tree(tmp_path), ("prod", "local", "odd", "prod")

    together = list(validate_each(tree, named, now=NOW))

    assert together == [validate(tree, environment=name, now=NOW) for name in named]
    assert [answer.has_errors for answer in together] == [False, True, True, False]


def test_a_value_is_judged_by_the_release_of_each_environment(tmp_path: Path) -> None:
    """Brokers of 4.1 refuse it and those of 4.0 take it; what one release says must not stand for the other."""
    kraft = LOCAL.replace("sandbox", 'sandbox, kafkaVersion: "RELEASE", source: kafka, lease: file')
    files = {
        f"environments/{name}.yaml": kraft.replace("name: local", f"name: {name}").replace("RELEASE", release)
        for name, release in (("new", "4.1"), ("old", "4.0"))
    }
    write(tmp_path, {**files, "web/a.yaml": topic("a", "spec: {configs: {segment.bytes: 1000B}}\n")})
    tree = read_tree(tmp_path)

    for named in (("new", "old"), ("old", "new")):
        judged = dict(zip(named, validate_each(tree, named, now=NOW), strict=True))
        assert [d.code for d in judged["new"].diagnostics if d.is_error] == ["TOP306"]
        assert desired(judged["old"]).topics["a"].configs == {"segment.bytes": "1000"}


def test_many_environments_are_refused_if_one_has_no_file(tmp_path: Path) -> None:
    write(tmp_path, {})
    with pytest.raises(UsageError, match="no environment is called 'prod'; in environments/ there are: local"):
        list(validate_each(read_tree(tmp_path), ("local", "prod"), now=NOW))

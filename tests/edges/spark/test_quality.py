"""Every rule in a healthy world, and in one in which the fault of each rule is planted; four validations in all.

The rows of the rules, made by Spark from tables, are those that plain Python makes of the same world.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from fakes import builders
from fixtures.quality_rows import rows_after, rows_before
from fixtures.random_worlds import World
from fixtures.spark_rows import written
from topicops.features.quality.edges.measuring import measures_frame
from topicops.features.quality.edges.rows import alike_frames, listed_frames, partition_frame, spec_frames, topic_frames
from topicops.features.quality.rules import AFTER, BEFORE, LAYOUTS, RULES, Afterwards, RowKind, Rule
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic, PartitionState
from topicops.model.runs.results import QualityResult
from topicops.model.specs.desired import Desired

CheckQuality = Callable[..., tuple[QualityResult, ...]]
Results = Mapping[str, QualityResult]
Key = tuple[object, ...]

RACKS = {1: "r1", 2: "r2", 3: "r3", 4: "r1"}
ONE_ROW: Assignment = {0: (1, 2, 3)}
PREFERRED = dict.fromkeys(range(40), (1, 2, 3))
"""So many that a few partitions that broker 1 does not lead are within Kafka's ten percent."""


def topic(
    name: str, state: PartitionState | None = None, *, assignment: Assignment = ONE_ROW, **fields: object
) -> LiveTopic:
    states = {p: builders.partition_state(row) for p, row in assignment.items()}
    return builders.live_topic(name, assignment=assignment, states=states | ({0: state} if state else {}), **fields)


def cluster(*topics: LiveTopic, **fields: object) -> ClusterSnapshot:
    return builders.snapshot(topic("many", assignment=PREFERRED), *topics, racks=RACKS, **fields)


def isr(*brokers: int, leader: int | None = None) -> PartitionState:
    return builders.partition_state(brokers, leader=leader)


OFFLINE = topic("q11", isr(1, 2, 3, leader=-1))
BEHIND = topic("q12", isr(1, 2))
HEALTHY = cluster(topic("orders"), topic("payments"), deleting={"old": 2_000})
SICK = cluster(
    OFFLINE,
    BEHIND,
    topic("q13", isr(1), overrides={"min.insync.replicas": "2"}),
    topic("q15", assignment={0: (1, 4)}),
    topic("q16", isr(1, 2, 3, leader=3), assignment={0: (2, 1, 3)}),
    topic("q17", assignment={0: (1, 2, 3), 2: (1, 2, 3)}),
    topic("q18", assignment={0: (1, 2, 3), 1: (1, 2)}),
    topic("q19", overrides={"min.insync.replicas": "4"}),
    topic("q21", adding={0: (3,)}),
    topic("q22", overrides={"leader.replication.throttled.replicas": "0:1"}),
    topic("we-move", assignment={0: (1, 2, 3), 1: (1, 2)}, adding={0: (3,)}),
    topic("we-moved", overrides={"leader.replication.throttled.replicas": "0:1"}),
    topic("q24"),
    topic("own"),
    topic("foreign"),
    topic("q26", isr(2, 3, leader=1)),
    topic("q27", isr(1, 2), assignment={0: (1, 2, 9)}),
    deleting={"q14": 400_000, "deleted-by-us": 1, "fresh": 2_000},
    orphan_configs=frozenset({"q20"}),
)
AFTER_SICK = Afterwards(
    managed=SICK.topics.keys() - {"foreign"},
    unmanaged_percent=4,
    deleted={"deleted-by-us"},
    own_moves={"we-move", "we-moved"},
    known_identities={
        "q24": "another",
        "own": "another",
        "foreign": "another",
        "q11": builders.topic_id("q11"),
        "q22": "czxid:100",
    },
    own_topic_identities={builders.topic_id("own")},
    differences={"q11": "", "q23": "broker 1 has leader 2 for partition 0, ZooKeeper 1"},
)
BEFORE_THE_SICKNESS = rows_after(cluster(BEHIND, topic("q26", isr(2, 3))), Afterwards(managed={"q12", "q26"}))

FAULTS_AFTER: Mapping[str, list[Key]] = {
    "Q11": [("q11", 0)],
    "Q12": [("q13", 0), ("q27", 0), ("q12", 0), ("q26", 0)],
    "Q13": [("q13", 0)],
    "Q14": [("deleted-by-us",), ("q14",)],
    "Q15": [("q15", 0)],
    "Q16": [(2,)],
    "Q17": [("q17",)],
    "Q18": [("q18",)],
    "Q19": [("q19",)],
    "Q20": [("q20",)],
    "Q21": [("q21",)],
    "Q22": [("q22",)],
    "Q23": [("q23",)],
    "Q24": [("q24",)],
    "Q25": [()],
    "Q26": [("q26", 0)],
    "Q27": [("q27", 0)],
}

GOOD_SPECS = builders.desired_of(builders.desired_topic("orders", configs={"retention.ms": "60000"}))
TWICE = builders.desired_topic("q01")
BAD_SPECS: Desired = replace(
    GOOD_SPECS,
    topics={
        "once": TWICE,
        "again": replace(TWICE, location=builders.location("again")),
        "q04": replace(builders.desired_topic("q04"), owner=" "),
        "q05": builders.desired_topic("q05", configs={"retention.ms": "soon", "cleanup.policy": None}),
    },
)
BAD_WORLD = builders.snapshot(
    topic("q02", isr(1), assignment={0: ()}),
    topic("q09", isr(1, 2, 3, leader=-1)),
    topic("restless", isr(1), assignment={0: ()}, unstable=True),
    *(topic(f"q06.{number:02}", overrides={"retention.ms": "soon"}) for number in range(30)),
    racks={1: "r1", 2: None, 3: "r3"},
    controller_id=None,
)
SPEC_FILES = ("topics/shop/again.yaml", "topics/shop/q01.yaml")
FAULTS_BEFORE: Mapping[str, list[Key]] = {
    "Q01": [("q01", file) for file in SPEC_FILES],
    "Q02": [("q02",)],
    "Q03": [()],
    "Q04": [("q04", "topics/shop/q04.yaml")],
    "Q05": [("q05", "retention.ms")],
    "Q06": [(f"q06.{number:02}", "retention.ms") for number in range(20)],
    "Q07": [()],
    "Q08": [()],
    "Q09": [("q09",)],
    "Q10": [()],
}
FAULTS = {**FAULTS_BEFORE, **FAULTS_AFTER}


def by_rule(results: tuple[QualityResult, ...]) -> Results:
    return {result.rule: result for result in results}


@pytest.fixture(scope="module")
def healthy(check_quality: CheckQuality) -> Results:
    before = rows_before(GOOD_SPECS, HEALTHY, builders.environment(min_live_brokers=4), topics_last_good=3)
    known = Afterwards(managed={"orders", "payments"}, known_identities={}, differences={"orders": "", "payments": ""})
    results = (*check_quality("before", before), *check_quality("after", rows_after(HEALTHY, known)))
    return by_rule(results)


@pytest.fixture(scope="module")
def sick(check_quality: CheckQuality) -> Results:
    before = rows_before(BAD_SPECS, BAD_WORLD, builders.environment(min_live_brokers=4), topics_last_good=100)
    after = check_quality("after", rows_after(SICK, AFTER_SICK), earlier=lambda: BEFORE_THE_SICKNESS)
    return by_rule((*check_quality("before", before), *after))


def test_every_rule_has_a_planted_fault() -> None:
    assert [rule.id for rule in RULES] == list(FAULTS)
    assert len(BEFORE) + len(AFTER) == len(RULES) == 27


def test_one_result_comes_for_each_rule_with_its_severity_and_runbook(healthy: Results) -> None:
    told = [(result.rule, result.title, result.severity, result.runbook) for result in healthy.values()]
    assert told == [(rule.id, rule.title, rule.severity, rule.runbook) for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_holds_in_a_healthy_world(healthy: Results, rule: Rule) -> None:
    result = healthy[rule.id]
    assert (result.success, result.rows_failed, result.examples) == (True, 0, ())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_fails_on_its_planted_fault_and_names_just_those_rows(sick: Results, rule: Rule) -> None:
    result = sick[rule.id]
    assert not result.success
    keys = [tuple(example.row[column] for column in LAYOUTS[rule.kind].key) for example in result.examples]
    assert keys == FAULTS[rule.id]
    shown = {column.rpartition(" AS ")[2] for column in rule.shows.split(", ")} - {""}
    assert all(example.row.keys() >= shown for example in result.examples)


def test_a_rule_says_how_many_rows_it_looked_at(healthy: Results) -> None:
    checked = {rule: result.rows_checked for rule, result in healthy.items()}
    assert checked["Q01"] == checked["Q05"] == 1
    assert checked["Q11"] == 42
    assert checked["Q17"] == 3
    assert checked["Q16"] == 4
    assert checked["Q14"] == 1


def test_at_most_twenty_rows_are_named_and_all_are_counted(sick: Results) -> None:
    assert (len(sick["Q06"].examples), sick["Q06"].rows_failed, sick["Q06"].rows_checked) == (20, 30, 30)


def test_trouble_of_before_the_changes_comes_last_and_is_counted(sick: Results) -> None:
    assert [(example.row["topic"], example.was_so_before) for example in sick["Q12"].examples] == [
        ("q13", False),
        ("q27", False),
        ("q12", True),
        ("q26", True),
    ]
    assert (sick["Q12"].rows_failed, sick["Q12"].rows_failed_before) == (4, 2)
    assert sick["Q26"].rows_failed_before == 0


@pytest.mark.parametrize("rule", ["Q23", "Q06"])
def test_where_nobody_knows_how_it_was_before_that_is_said(sick: Results, rule: str) -> None:
    assert sick[rule].rows_failed_before is None
    assert {example.was_so_before for example in sick[rule].examples} == {None}


def test_a_row_tells_what_is_wrong_with_it(sick: Results) -> None:
    [behind] = [example.row for example in sick["Q12"].examples if example.row["topic"] == "q13"]
    assert behind == {"topic": "q13", "partition": 0, "missing_replicas": [2, 3], "isr": [1]}
    assert sick["Q03"].examples[0].row == {"topics": 33, "topics_last_good": 100, "topics_at_least": 90}
    assert sick["Q24"].examples[0].row["known_identity"] == "another"


def test_a_cluster_without_any_topic_passes(check_quality: CheckQuality) -> None:
    results = check_quality("after", rows_after(builders.snapshot(), Afterwards(managed=())))
    assert [result.rule for result in results if not result.success] == []


WORLDS = [pytest.param(seed, marks=[pytest.mark.soak] if seed > 1 else []) for seed in range(6)]


def rows_of(frame: DataFrame, like: Sequence[tuple[object, ...]]) -> Counter[object]:
    """Return the frame's rows, with its columns in the order of the row type."""
    fields = like[0]._fields if like else frame.columns  # type: ignore[attr-defined]
    return Counter(str(tuple(_plain(row[name]) for name in fields)) for row in frame.toArrow().to_pylist())


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def with_all_states(live: ClusterSnapshot) -> ClusterSnapshot:
    topics: Iterable[LiveTopic] = live.topics.values()
    return replace(live, topics={t.name: replace(t, states=t.states or {}) for t in topics})


@pytest.mark.parametrize("seed", WORLDS)
def test_spark_makes_the_rows_that_plain_python_makes(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    world = World(seed)
    live = with_all_states(world.live)
    names = sorted(live.topics)
    known = Afterwards(
        managed=world.desired.topics.keys(),
        known_identities={name: "other" if n % 2 else live.topics[name].identity for n, name in enumerate(names[1:])},
        own_topic_identities={live.topics[name].identity for name in names[:2]},
    )
    tables = written(spark, tmp_path, world, live)
    before = rows_before(world.desired, live, world.environment, topics_last_good=None)
    after = rows_after(live, known)

    made: dict[RowKind, DataFrame] = {**spec_frames(tables), **listed_frames(tables), **topic_frames(tables, known)}
    made |= {"partition": partition_frame(tables), "broker": alike_frames(tables)["broker"]}

    plain: Mapping[RowKind, Sequence[tuple[object, ...]]] = {**dict.fromkeys(made, ()), **before, **after}
    assert {kind: rows_of(frame, plain[kind]) for kind, frame in made.items()} == {
        kind: Counter(str(tuple(row)) for row in plain[kind]) for kind in made
    }

    rules = [rule for rule in AFTER if rule.kind == "partition"]
    alike = measures_frame(rules, {"partition": alike_frames(tables)["partition"]})
    assert rows_of(alike, ()) == rows_of(measures_frame(rules, {"partition": partition_frame(tables)}), ())

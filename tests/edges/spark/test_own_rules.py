"""Rules of an environment's own, judged by Spark over a run's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from fixtures.quality_rows import rows_after, rows_before
from fixtures.random_worlds import World
from fixtures.spark_rows import written
from topicops.features.quality.edges.in_spark import frames_to_count, frames_to_name
from topicops.features.quality.edges.measuring import judge_rows
from topicops.features.quality.edges.rows import spec_frames
from topicops.features.quality.edges.validation import expectation_of, failed_rules
from topicops.features.quality.measures import results_of
from topicops.features.quality.rules import Afterwards, Rule, rules_of
from topicops.features.spark.edges.frames import RunTables
from topicops.model.runs.results import QualityResult, QualitySuite
from topicops.model.specs.environment import EnvironmentSpec, Quality, QualityRule
from topicops.steps.specs.conditions import COLUMNS

OWN = (
    QualityRule(id="odd-topics", level="spec", holds="partitions % 2 = 0", title="Topics have even numbers"),
    QualityRule(id="short-names", level="topic", holds="length(topic) < 4", title="Names are short", gate=True),
    QualityRule(
        id="first-partitions",
        level="partition",
        holds="partition > 0 OR leader = replicas[0]",
        title="The first partition is led by its first replica",
        severity="critical",
        runbook="https://example.com/leaders",
    ),
    QualityRule(id="two-copies", level="partition", holds="size(replicas) >= 2", title="There are two copies"),
    QualityRule(id="leaders", level="broker", holds="led > 0", title="Each broker leads"),
)


WORLD = World(15)
LIVE = replace(WORLD.live, topics={t.name: replace(t, states=t.states or {}) for t in WORLD.live.topics.values()})
KNOWN = Afterwards(managed=WORLD.desired.topics.keys())


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> RunTables:
    return written(spark, tmp_path, WORLD, LIVE)


def own_rules(suite: QualitySuite) -> tuple[Rule, ...]:
    spec: EnvironmentSpec = msgspec.structs.replace(WORLD.environment.spec, quality=Quality(rules=OWN))
    return tuple(rule for rule in rules_of(suite, spec) if rule.own)


def judged(tables: RunTables, suite: QualitySuite, folder: Path) -> Mapping[str, QualityResult]:
    rules = own_rules(suite)
    specs = spec_frames(tables)
    to_count = {**specs, **frames_to_count(tables, KNOWN, rules)}
    with tables.step("quality", rows=0):
        found = judge_rows(rules, to_count, lambda: {**specs, **frames_to_name(tables, KNOWN)}, {})[0]
    failed = failed_rules(folder / "gx-project", f"local-{suite}", rules, found.measures, run="1")
    return {result.rule: result for result in results_of(rules, found, failed)}


def test_the_columns_of_a_level_are_those_of_its_rows(tables: RunTables) -> None:
    frames = {**spec_frames(tables), **frames_to_name(tables, KNOWN)}
    types = {level: dict(frames[level].dtypes) for level in COLUMNS}
    assert {level: {name: types[level].get(name) for name in columns} for level, columns in COLUMNS.items()} == COLUMNS


def test_each_rule_is_judged_over_all_rows_of_its_level_and_its_result_has_its_words(
    tables: RunTables, tmp_path: Path
) -> None:
    before, after = judged(tables, "before", tmp_path), judged(tables, "after", tmp_path)
    specs = rows_before(WORLD.desired, LIVE, WORLD.environment, topics_last_good=None)["spec"]
    rows = rows_after(LIVE, KNOWN)
    partitions = [row._asdict() for row in rows["partition"]]
    first = [p for p in partitions if p["partition"] == 0 and (not p["replicas"] or p["leader"] != p["replicas"][0])]
    expected = {
        "odd-topics": sum(row._asdict()["partitions"] % 2 for row in specs),
        "short-names": sum(len(row._asdict()["topic"]) >= 4 for row in rows["topic"]),
    }
    assert {name: result.rows_failed for name, result in before.items()} == expected
    assert {name: result.rows_failed for name, result in after.items()} == {
        "short-names": expected["short-names"],
        "first-partitions": len(first),
        "two-copies": sum(len(p["replicas"]) < 2 for p in partitions),
        "leaders": sum(not row._asdict()["led"] for row in rows["broker"]),
    }
    broken = {name for results in (before, after) for name, result in results.items() if result.rows_failed}
    assert broken == {rule.id for rule in OWN}
    found = after["first-partitions"]
    own = OWN[2]
    assert (found.title, found.severity, found.runbook) == (own.title, own.severity, own.runbook)
    assert found.is_critical_failure
    assert {tuple(example.row) for example in found.examples} == {("topic", "partition", "leader", "replicas")}
    rule = next(rule for rule in own_rules("after") if rule.id == own.id)
    assert expectation_of(rule).meta == {"rule": own.id, "holds": rule.holds, "runbook": own.runbook}

"""Data quality before and after the changes: may the inputs be trusted, and is the result healthy?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from topicops.edges.home.audit_files import logged_topics
from topicops.edges.home.memories import IDENTITIES
from topicops.edges.places import scratch_folder
from topicops.features.quality.rules import Afterwards, RowKind, Rule, cluster_row, deletion_rows, inputs_row, rules_of
from topicops.flow.runs.kept import keep_facts, load_snapshot, load_specs, note_reading, snapshot_into
from topicops.flow.runs.outcomes import read_outcomes
from topicops.flow.runs.run import EnvironmentRun, audit_folder, now, read_environment
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, TopicTraces
from topicops.model.memory import in_parts
from topicops.model.plans.changes import Action
from topicops.model.ports import BrokerMetadata, BrokerView, Clock, LiveReader
from topicops.model.runs.results import OutcomeStatus, QualityReport, QualitySuite, quality_file
from topicops.steps.facts import facts_of
from topicops.steps.verifying.broker_checks import metadata
from topicops.steps.verifying.observation import Expectation, Observation, chosen_brokers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from topicops.features.quality.edges.rows import Frames
    from topicops.features.spark.edges.frames import RunTables

DELETES: tuple[Action, ...] = ("delete",)
BROKERS_ASKED = 3
"""The controller sends every broker the same metadata; verify asks more brokers about what the run changed."""
TOPICS_AT_ONCE = 500
READINGS = 3
PAUSE_S = 1.0
"""The controller writes to ZooKeeper first and then informs the brokers."""


@contextmanager
def beside(run: EnvironmentRun) -> Iterator[None]:
    """Keep one Spark application for ``before`` and the steps after it in the same block.

    A Spark of this machine starts while Great Expectations is imported; either takes seconds.
    """
    from topicops.features.spark.edges.session import spark_application, spark_session

    with spark_application(connections=run.connections, progress=run.progress):
        import_module("topicops.features.quality.edges.validation")
        with spark_session(connections=run.connections, progress=run.progress):
            yield


def before(run: EnvironmentRun) -> QualityReport:
    """Return ``quality-before.json``: may the inputs be trusted, and is the cluster fit for changes?"""
    from topicops.features.quality.edges.rows import listed_frames, rows_frame, spec_frames
    from topicops.features.spark.edges.frames import RunTables
    from topicops.features.spark.edges.session import spark_session

    specs, snapshot = load_specs(run), load_snapshot(run)
    live, desired = snapshot.live, specs.desired
    inputs = inputs_row(live, specs.environment, snapshot.reading.topics_at_last_good_snapshot)
    rules = rules_of("before", specs.environment.spec)
    known = Afterwards(managed=desired.topics.keys())
    own: Mapping[RowKind, int] = {"spec": len(desired.topics), "listed": len(live.topics), "inputs": 1}
    expected = {**expected_of_cluster(live), **own}
    with spark_session(connections=run.connections) as spark:
        tables = RunTables(spark, run.known_tables(), live, f"{run.environment} {run.name}")
        one_row = rows_frame(spark, "inputs", [inputs])
        frames: Frames = {**spec_frames(tables), **listed_frames(tables), "inputs": one_row}
        if all(rule.kind in frames for rule in rules):
            return _judge(run, "before", rules, tables, frames, lambda: frames, expected)[0]
        live = run.access(specs.environment).with_broker_answers(live)  # defaults that only brokers know
        gates = replace(tables, head=live)
        to_count = {**frames, **frames_to_count(gates, known, rules)}
        to_name = lambda: {**frames, **frames_to_name(gates, known)}  # noqa: E731 - typed by its use
        return _judge(run, "before", rules, tables, to_count, to_name, expected)[0]


def after(run: EnvironmentRun) -> QualityReport:
    """``quality-after.json`` and ``facts-after.json``: is the cluster healthy? Over a fresh snapshot with states.

    Rows that were wrong in the run's first snapshot already are counted apart from new ones.
    """
    from topicops.features.spark.edges.session import spark_application

    with spark_application(connections=run.connections, progress=run.progress):
        return _after(run)


def _after(run: EnvironmentRun) -> QualityReport:
    from topicops.edges.tables.topics import read_identities
    from topicops.features.spark.edges.comparison import counted, counts_of
    from topicops.features.spark.edges.frames import RunTables
    from topicops.features.spark.edges.session import spark_session

    environment, folder = read_environment(run), run.known_tables().below("after")
    note_reading(run, run.home, "after")
    access = run.access(environment)
    with access.reader() as reader, access.broker_views() as brokers:
        live = access.with_broker_answers(snapshot_into(folder, reader, environment.spec.cluster.release, states=True))
        differences = differing_topics(live, reader=reader, brokers=brokers, clock=Clock())
    memory, identities = IDENTITIES.of(run.home, live.cluster_id), dict(read_identities(folder))
    known_before = memory.read()
    # Of the topics that had another one when quality was last checked.
    new = {identity for name, identity in identities.items() if (known_before or {}).get(name, identity) != identity}
    known = Afterwards(
        managed=run.read_desired().topics.keys(),
        unmanaged_percent=environment.spec.limits.unmanaged_percent,
        prefix=environment.prefix,
        deleted={o.topic for o in read_outcomes(run, DELETES) if o.status is OutcomeStatus.DONE},
        known_identities=known_before,
        own_topic_identities=logged_topics(audit_folder(run.home), run.environment, new, "create"),
        differences=differences,
        own_moves=run.known_moves().topics.keys(),
    )
    first = replace(run.read_live(), broker_defaults=live.broker_defaults, releases=live.releases)
    was_so = replace(known, deleted=(), known_identities=None, differences=None)
    rules = rules_of("after", environment.spec)
    with spark_session(connections=run.connections) as spark:
        name = f"{run.environment} {run.name}"
        tables, earlier = RunTables(spark, folder, live, name), RunTables(spark, run.known_tables(), first, name)
        found, beside = _judge(
            run,
            "after",
            rules,
            tables,
            frames_to_count(tables, known, rules),
            partial(frames_to_name, tables, known),
            expected_after(live, differences),
            earlier=partial(frames_to_name, earlier, was_so) if first.has_states else None,
            beside=counted(tables),
        )
        keep_facts(run, "after", facts_of(counts_of(beside), live), folder)
    memory.write(identities)
    return found


def frames_to_count(tables: RunTables, known: Afterwards, rules: Iterable[Rule] = ()) -> Frames:
    """Return the rows of each kind for counting: alike partitions are one row, unless a rule reads topic or number."""
    from topicops.features.quality.edges.rows import alike_frames, partition_frame

    frames: Frames = {**_frames_of_topics(tables, known), **alike_frames(tables)}
    own = [rule.shows.split(", ") for rule in rules if rule.own and rule.kind == "partition"]
    reads_key = any("topic" in shown or "partition" in shown for shown in own)
    return {**frames, "partition": partition_frame(tables)} if reads_key else frames


def frames_to_name(tables: RunTables, known: Afterwards) -> Frames:
    """Return all rows of each kind, each under its own name."""
    from topicops.features.quality.edges.rows import partition_frame

    return {**frames_to_count(tables, known), "partition": partition_frame(tables)}


def _frames_of_topics(tables: RunTables, known: Afterwards) -> Frames:
    from topicops.features.quality.edges.rows import rows_frame, topic_frames

    small: dict[RowKind, Sequence[tuple[object, ...]]] = {
        "deletion": deletion_rows(tables.head, known),
        "cluster": [cluster_row(tables.head, known)],
    }
    if known.differences is not None:
        small["difference"] = list(known.differences.items())
    frames = {kind: rows_frame(tables.spark, kind, rows) for kind, rows in small.items()}
    return {**topic_frames(tables, known), **frames}


def expected_of_cluster(live: ClusterSnapshot) -> Mapping[RowKind, int]:
    going = sum(live.topics[name].partitions for name in live.deleting if name in live.topics)
    return {"partition": live.partitions - going, "topic": len(live.topics)}


def expected_after(live: ClusterSnapshot, differences: Mapping[str, str]) -> Mapping[RowKind, int]:
    """Return how many rows of a kind there must be, where that is known."""
    return {**expected_of_cluster(live), "deletion": len(live.deleting), "difference": len(differences), "cluster": 1}


def _judge(
    run: EnvironmentRun,
    suite: QualitySuite,
    rules: Sequence[Rule],
    tables: RunTables,
    to_count: Frames,
    to_name: Callable[[], Frames],
    expected: Mapping[RowKind, int],
    *,
    earlier: Callable[[], Frames] | None = None,
    beside: DataFrame | None = None,
) -> tuple[QualityReport, Sequence[Mapping[str, Any]]]:
    """Judge the rows by the rules of a suite, and keep the report; also give the rows of ``beside``."""
    from topicops.edges.tables.results import write_quality
    from topicops.features.quality.edges.measuring import judge_rows, results_of
    from topicops.features.quality.edges.validation import failed_rules

    started = time.monotonic()
    with tables.step(f"quality_{suite}", rows=sum(expected.values())):
        judged = judge_rows(rules, to_count, to_name, expected, earlier=earlier, beside=beside)
    project = scratch_folder(run.home) / "great-expectations" / run.environment
    failed = failed_rules(project, f"{run.environment}-{suite}", rules, judged.measures, run=run.name)
    results = results_of(rules, judged, failed)
    found = QualityReport(
        suite=suite,
        environment=run.environment,
        cluster_id=tables.head.cluster_id,
        run=run.name,
        checked_at=now(),
        seconds=round(time.monotonic() - started, 3),
        results=results,
    )
    run.store.write_value(quality_file(suite), found)
    write_quality(tables.folder, results)
    return found, judged.beside


def differing_topics(
    live: ClusterSnapshot, *, reader: LiveReader, brokers: BrokerMetadata, clock: Clock
) -> Mapping[str, str]:
    """Return the brokers' differences by topic; an empty text if they agree. Topics that differ are read again.

    Topics that are being deleted are left out. When no broker answers, the only entry has no name and gives the reason.
    """
    asked = chosen_brokers(live.brokers, most=BROKERS_ASKED)
    found: dict[str, str] = {}
    for topics in _readings(live, found, reader, clock) if asked else ():
        answers = brokers.views(asked, sorted(topics))
        views = {broker: answer for broker, answer in answers.items() if isinstance(answer, BrokerView)}
        if not views:
            return {"": "; ".join(str(answer) for answer in answers.values())}
        found |= {name: _differences(live, topic, views) for name, topic in topics.items()}
    return found


def _readings(
    live: ClusterSnapshot, found: dict[str, str], reader: LiveReader, clock: Clock
) -> Iterator[Mapping[str, LiveTopic]]:
    """Yield the topics to compare, then those that differed, read again. Removes lost topics from ``found``."""
    yield from in_parts(live.topics, [name for name in live.topics if name not in live.deleting], size=TOPICS_AT_ONCE)
    for _ in range(READINGS - 1):
        differing = sorted(name for name, text in found.items() if text)
        if not differing:
            return
        clock.sleep(PAUSE_S)
        traces = reader.traces(differing, states=True)
        again = {name: trace.live for name, trace in traces.items() if trace.live and not trace.is_deleting}
        for name in traces.keys() - again.keys():
            del found[name]
        if again:
            yield again


def _differences(live: ClusterSnapshot, topic: LiveTopic, views: Mapping[int, BrokerView]) -> str:
    observation = Observation(
        expected=Expectation(topic=topic.name),
        traces=TopicTraces(live=topic, has_config_znode=True, is_deleting=False),
        brokers=live.brokers,
        controller_epoch=live.controller_epoch,
        source=live.source,
        views=views,
    )
    return "; ".join(finding.message for finding in metadata(observation))

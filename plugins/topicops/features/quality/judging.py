"""Data quality before and after the changes: may the inputs be trusted, and is the result healthy?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module

from topicops.edges.home.audit_files import logged_topics
from topicops.edges.home.memories import IDENTITIES
from topicops.edges.places import scratch_folder
from topicops.features.quality.in_python import judge_rows
from topicops.features.quality.measures import Judged, results_of
from topicops.features.quality.rows import rows_after, rows_before
from topicops.features.quality.rules import Afterwards, RowKind, Rule, inputs_row, rules_of
from topicops.flow.engines import PYTHON, DiffEngine
from topicops.flow.runs.kept import keep_facts, load_snapshot, load_specs, note_reading, snapshot_into
from topicops.flow.runs.outcomes import read_outcomes
from topicops.flow.runs.run import EnvironmentRun, audit_folder, now, read_environment
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, TopicTraces
from topicops.model.memory import in_parts
from topicops.model.plans.changes import Action
from topicops.model.ports import BrokerMetadata, BrokerView, Clock, LiveReader
from topicops.model.runs.results import OutcomeStatus, QualityReport, QualitySuite, quality_file
from topicops.steps.facts import facts_of, partition_counts
from topicops.steps.verifying.broker_checks import metadata
from topicops.steps.verifying.observation import Expectation, Observation, chosen_brokers

DELETES: tuple[Action, ...] = ("delete",)
BROKERS_ASKED = 3
"""The controller sends every broker the same metadata; verify asks more brokers about what the run changed."""
TOPICS_AT_ONCE = 500
READINGS = 3
PAUSE_S = 1.0
"""The controller writes to ZooKeeper first and then informs the brokers."""


@contextmanager
def beside(run: EnvironmentRun, engine: DiffEngine) -> Iterator[None]:
    """Keep what the engine needs for ``before`` and the steps after it in the same block.

    A Spark of this machine starts while Great Expectations is imported; either takes seconds.
    """
    with engine.beside(run.connections, run.progress, run):
        import_module("topicops.features.quality.edges.validation")
        yield


def before(run: EnvironmentRun, engine: DiffEngine) -> QualityReport:
    """Return ``quality-before.json``: may the inputs be trusted, and is the cluster fit for changes?"""
    started, specs, snapshot = time.monotonic(), load_specs(run), load_snapshot(run)
    live, desired, environment = snapshot.live, specs.desired, specs.environment
    rules = rules_of("before", environment.spec)
    inputs = inputs_row(live, environment, snapshot.reading.topics_at_last_good_snapshot)
    own: Mapping[RowKind, int] = {"spec": len(desired.topics), "listed": len(live.topics), "inputs": 1}
    expected = {**expected_of_cluster(live), **own}
    if engine is PYTHON:
        judged = judge_rows(rules, partial(rows_before, desired, live, environment, inputs), expected)
    else:
        from topicops.features.quality.edges.in_spark import judge_before

        if any(rule.own and rule.kind != "spec" for rule in rules):
            live = run.access(environment).with_broker_answers(live)  # defaults that only brokers know
        judged = judge_before(run, rules, live, inputs, Afterwards(managed=desired.topics.keys()), expected)
    return _kept(run, "before", rules, judged, live, started)


def after(run: EnvironmentRun, engine: DiffEngine) -> QualityReport:
    """``quality-after.json`` and ``facts-after.json``: is the cluster healthy? Over a fresh snapshot with states.

    Rows that were wrong in the run's first snapshot already are counted apart from new ones.
    """
    with engine.beside(run.connections, run.progress, run):
        return _after(run, engine)


def _after(run: EnvironmentRun, engine: DiffEngine) -> QualityReport:
    from topicops.edges.tables.topics import read_identities

    environment, folder = read_environment(run), run.known_tables().below("after")
    note_reading(run, run.home, "after")
    access = run.access(environment)
    with access.reader() as reader, access.broker_views() as brokers:
        live = access.with_broker_answers(snapshot_into(folder, reader, environment.spec.cluster.release, states=True))
        differences = differing_topics(live, reader=reader, brokers=brokers, clock=Clock())
    started = time.monotonic()
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
    rules, expected = rules_of("after", environment.spec), expected_after(live, differences)
    if engine is PYTHON:
        earlier = partial(rows_after, first, was_so) if first.has_states else None
        judged = judge_rows(rules, partial(rows_after, live, known), expected, earlier=earlier)
        counts = partition_counts(live)
    else:
        from topicops.features.quality.edges.in_spark import judge_after

        judged, counts = judge_after(run, rules, live, known, expected, first=first, was_so=was_so)
    found = _kept(run, "after", rules, judged, live, started)
    keep_facts(run, "after", facts_of(counts, live), folder)
    memory.write(identities)
    return found


def expected_of_cluster(live: ClusterSnapshot) -> Mapping[RowKind, int]:
    going = sum(live.topics[name].partitions for name in live.deleting if name in live.topics)
    return {"partition": live.partitions - going, "topic": len(live.topics)}


def expected_after(live: ClusterSnapshot, differences: Mapping[str, str]) -> Mapping[RowKind, int]:
    """Return how many rows of a kind there must be, where that is known."""
    return {**expected_of_cluster(live), "deletion": len(live.deleting), "difference": len(differences), "cluster": 1}


def _kept(
    run: EnvironmentRun,
    suite: QualitySuite,
    rules: Sequence[Rule],
    judged: Judged,
    live: ClusterSnapshot,
    started: float,
) -> QualityReport:
    """Let Great Expectations validate the measures, and keep the report."""
    from topicops.edges.tables.results import write_quality
    from topicops.features.quality.edges.validation import failed_rules

    project = scratch_folder(run.home) / "great-expectations" / run.environment
    failed = failed_rules(project, f"{run.environment}-{suite}", rules, judged.measures, run=run.name)
    results = results_of(rules, judged, failed)
    found = QualityReport(
        suite=suite,
        environment=run.environment,
        cluster_id=live.cluster_id,
        run=run.name,
        checked_at=now(),
        seconds=round(time.monotonic() - started, 3),
        results=results,
    )
    run.store.write_value(quality_file(suite), found)
    tables = run.known_tables()
    write_quality(tables if suite == "before" else tables.below("after"), results)
    return found


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

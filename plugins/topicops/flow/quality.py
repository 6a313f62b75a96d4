"""Data quality before and after the changes: may the inputs be trusted, and is the result healthy?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from topicops.edges.home.audit_files import created_topics
from topicops.edges.home.quality_history import quality_history as read_history
from topicops.edges.home.topic_identities import TopicIdentities
from topicops.flow.runs.outcomes import read_outcomes
from topicops.flow.runs.run import Run, Summary, audit_folder, now, read_environment
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.changes import Action
from topicops.model.ports import Clock
from topicops.model.runs.quality_rows import Afterwards, QualityInput, rows_after, rows_before
from topicops.model.runs.results import OutcomeStatus, QualityReport, QualitySuite, RunQuality, quality_file
from topicops.steps.verifying.view_comparison import differing_topics

DELETES: tuple[Action, ...] = ("delete",)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualitySummary(Summary):
    rules: int
    failed: list[str]
    critical: list[str]
    """Failed rules that stop a run."""


def quality_before(run: Run) -> QualitySummary:
    """``quality-before.json``: may the inputs be trusted, and is the cluster fit for changes?"""
    read = run.store.read_json("run.json")
    topics_before = read.get("topics_at_last_good_snapshot") if isinstance(read, dict) else None
    live = run.read_live()
    rows = rows_before(
        run.read_desired(),
        live,
        read_environment(run),
        topics_last_good=topics_before if isinstance(topics_before, int) else None,
    )
    return _check_quality(run, "before", live, rows)


def quality_after(run: Run) -> QualitySummary:
    """``quality-after.json``: is the cluster healthy? Rules over a fresh snapshot with states.

    Rows that were wrong in ``live.json`` already are counted apart from new ones.
    """
    environment = read_environment(run)
    access = run.access(environment)
    with access.reader() as reader, access.broker_views() as brokers:
        live = access.with_broker_defaults(reader.snapshot(states=True))
        differences = differing_topics(live, reader=reader, brokers=brokers, clock=Clock())
    identities = TopicIdentities(run.home, live.cluster_id)
    identities_before = identities.read()
    known = Afterwards(
        managed=run.read_desired().topics.keys(),
        unmanaged_percent=environment.spec.limits.unmanaged_percent,
        deleted={o.topic for o in read_outcomes(run, DELETES) if o.status is OutcomeStatus.DONE},
        known_identities=identities_before,
        own_topic_identities=created_topics(
            audit_folder(run.home), run.environment, _new_identities(live, identities_before or {})
        ),
        differences=differences,
    )
    summary = _check_quality(
        run, "after", live, rows_after(live, known), earlier=lambda: _rows_earlier(run, known, live.broker_defaults)
    )
    identities.write({topic.name: topic.identity for topic in live.topics.values()})
    return summary


def _new_identities(live: ClusterSnapshot, before: Mapping[str, str]) -> set[str]:
    """Identities of the topics that had another one when quality was last checked."""
    topics = live.topics.values()
    return {topic.identity for topic in topics if before.get(topic.name, topic.identity) != topic.identity}


def quality_history(home: Path, group: str) -> tuple[RunQuality, ...]:
    """The last runs of a DAG that evaluated any rule, newest first."""
    return read_history(home, group)


def _rows_earlier(run: Run, known: Afterwards, defaults: Mapping[str, str] | None) -> QualityInput:
    """The same rows as they were before the changes; none if that snapshot was read without states."""
    live = replace(run.read_live(), broker_defaults=defaults)
    if any(topic.states is None for topic in live.topics.values()):
        return {}
    return rows_after(live, replace(known, deleted=(), known_identities=None, differences=None))


def _check_quality(
    run: Run,
    suite: QualitySuite,
    live: ClusterSnapshot,
    rows: QualityInput,
    *,
    earlier: Callable[[], QualityInput] | None = None,
) -> QualitySummary:
    from topicops.edges.spark.quality import check_quality
    from topicops.edges.spark.session import spark_session

    started = time.monotonic()
    with spark_session() as spark:
        results = check_quality(spark, suite, rows, earlier=earlier)
    found = QualityReport(
        suite=suite,
        environment=run.environment,
        cluster_id=live.cluster_id,
        run=run.name,
        checked_at=now(),
        seconds=round(time.monotonic() - started, 3),
        results=results,
    )
    path = run.store.write_value(quality_file(suite), found)
    return QualitySummary(
        path=str(path),
        rules=len(results),
        failed=[result.rule for result in found.failed],
        critical=list(found.critical),
    )

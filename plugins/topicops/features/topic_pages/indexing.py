"""Keep the topic index, from which the Topics page is read, as the runs of an environment find the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import msgspec

from topicops.edges.durable_files import as_artifact_error
from topicops.edges.home.audit_files import full_files, line_of, log_path, read_audit_log
from topicops.features.topic_pages.file import TopicIndex
from topicops.features.topic_pages.rows import indexed_topics, planned_changes
from topicops.features.topic_pages.values import IndexHead, LastChange, PlannedChange
from topicops.flow.runs.kept import load_reading, reading_marks
from topicops.flow.runs.memory import read_rejections
from topicops.flow.runs.outcomes import outcomes_so_far
from topicops.flow.runs.questions import ASKED_SET
from topicops.flow.runs.run import COMMIT_ADDRESS, PLAN_FILE, EnvironmentRun, Run, audit_folder, now
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError, TopicopsError
from topicops.model.plans.plan import Plan
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.facts import FactsWhen
from topicops.model.runs.results import QUIET_FILE, QualityReport, QualitySuite, quality_file
from topicops.steps.planning.only import needs_again

AFTER: QualitySuite = "after"


def index_topics(run: EnvironmentRun) -> None:
    """Write the index from what a run has left so far. A problem is a line of progress, and no more.

    A run with a part of the plan (``only``, or an approval) has all facts of the cluster; what the index of before says
    of the plan of other topics stays. A quiet run has found nothing different: then the index only learns when.
    """
    index = TopicIndex.of(run.home, run.environment)
    try:
        if not run.store.has(QUIET_FILE):
            _write(run, index)
        elif index.path.exists():
            index.note_look(now(), reading_marks(run, "before"))
    except TopicopsError as error:
        run.progress(f"The Topics page stays as it was: {error}")


def life_of_topic(home: Path, environment: str, topic: str, *, most: int) -> Sequence[AuditLine]:
    """Read the last ``most`` lines of the audit log about a topic, newest first. Raises ``ArtifactError``."""
    found: list[AuditLine] = []
    folder, named = audit_folder(home), b'"topic":' + msgspec.json.encode(topic)
    for path in reversed([*full_files(folder, environment), log_path(folder, environment)]):
        with as_artifact_error(path, "cannot be read"):
            texts = path.read_bytes().split(b"\n") if path.exists() else []
        lines = (line_of(text) for text in reversed(texts) if named in text)
        found += [line for line in lines if line is not None and line.topic == topic]
        if len(found) >= most:
            break
    return found[:most]


def _write(run: EnvironmentRun, index: TopicIndex) -> None:
    desired, (live, read_at, when) = run.read_desired(), _newest_live(run)
    plan = run.read_plan() if run.store.has(PLAN_FILE) else None
    is_of_plan = _topics_of_plan(run, plan)
    if is_of_plan is not None and not index.path.exists():
        return  # nothing is known of the other topics
    changes, lines = _last_changes(run, index)
    head = IndexHead(
        environment=run.environment,
        run=run.name,
        read_at=read_at,
        commit=desired.commit,
        commit_address=run.store.read_text(COMMIT_ADDRESS) if run.store.has(COMMIT_ADDRESS) else "",
        audit_lines=lines,
        audit_marks=reading_marks(run, when),
        live=replace(live, topics={}),
    )
    planned = _planned(run, plan)
    if is_of_plan is not None:
        planned = {**{name: found for name, found in index.planned().items() if not is_of_plan(name)}, **planned}
    index.write(head, indexed_topics(live, desired.topics, planned, changes, desired.left_out))


def _topics_of_plan(run: Run, plan: Plan | None) -> Callable[[str], bool] | None:
    """Say which topics the plan is about; None means all."""
    if plan is None or not run.store.has(ASKED_SET):
        return needs_again(plan) if plan else None
    asked_about = {gated.change.topic for gated in plan.changes}
    return lambda name: name in asked_about


def _planned(run: EnvironmentRun, plan: Plan | None) -> Mapping[str, Sequence[PlannedChange]]:
    outcomes = {outcome.digest: outcome for outcome in outcomes_so_far(run)}
    rejected = {digest: str(found) for digest, found in read_rejections(run.home, run.environment).items()}
    return planned_changes(plan, run=run.name, outcomes=outcomes, rejected=rejected)


def _newest_live(run: Run) -> tuple[ClusterSnapshot, datetime, FactsWhen]:
    """Read the snapshot after the changes, if the run has taken one; else its first one. With its time."""
    live, tables = run.read_live(), run.tables()
    if tables is not None and run.store.has(quality_file(AFTER)):
        from topicops.edges.tables.results import read_cluster
        from topicops.edges.tables.topics import read_live_topics

        after = tables.below(AFTER)
        checked_at = run.store.read_value(quality_file(AFTER), QualityReport).checked_at
        return read_cluster(after, live, read_live_topics(after)), checked_at, "after"
    reading = load_reading(run)
    return live, reading.read_at if reading else now(), "before"


def _last_changes(run: EnvironmentRun, index: TopicIndex) -> tuple[Mapping[str, LastChange], int]:
    """Read the last changes by topic, and count the audit log's lines. Reads no line that the index of before knows."""
    try:
        known, count = index.last_changes(), index.head().audit_lines
    except ArtifactError:  # there is none, or it is damaged: the whole log is read
        known, count = {}, 0
    log = read_audit_log(audit_folder(run.home), run.environment, may_begin_with=lambda line: line.n <= count + 1)
    lines = [line for line in log.lines if line.n > count]
    newer = {
        line.topic: LastChange(at=line.at, action=line.action, outcome=line.outcome, run=line.run, by=line.who)
        for line in lines
    }
    return {**known, **newer}, lines[-1].n if lines else count

"""Keep the topic index, from which the Topics page is read, as the runs of an environment find the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from topicops.edges.home.audit_files import lines_of_topic, read_audit_log
from topicops.edges.home.topic_index import (
    TopicIndex,
    indexed_environments,
    topic_index_path,
    write_topic_index,
)
from topicops.flow.later_changes import reading_marks
from topicops.flow.runs.held_changes import read_rejections
from topicops.flow.runs.kept import load_reading
from topicops.flow.runs.outcomes import outcomes_so_far
from topicops.flow.runs.questions import ASKED_SET
from topicops.flow.runs.run import COMMIT_ADDRESS, PLAN_FILE, Run, audit_folder, now
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError, TopicopsError
from topicops.model.plans.plan import Plan
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.facts import FactsWhen
from topicops.model.runs.results import QualityReport, QualitySuite, quality_file
from topicops.model.runs.topic_index import IndexHead, LastChange, PlannedChange
from topicops.steps.planning.only import needs_again
from topicops.steps.topic_index import indexed_topics, planned_changes

__all__ = [
    "TopicIndex",
    "index_of",
    "index_topics",
    "indexed_environments",
    "life_of_topic",
    "note_look",
]

AFTER: QualitySuite = "after"


def index_topics(run: Run) -> None:
    """Write the index from what a run has left so far. A problem is a line of progress, and no more.

    A run with a part of the plan (``only``, or an approval) has all facts of the cluster; what the index of before says
    of the plan of other topics stays.
    """
    try:
        _write(run)
    except TopicopsError as error:
        run.progress(f"The Topics page stays as it was: {error}")


def note_look(run: Run) -> None:
    """A quiet run has found nothing different."""
    index = index_of(run.home, run.environment)
    try:
        if index.path.exists():
            index.note_look(now(), reading_marks(run, "before"))
    except ArtifactError as error:
        run.progress(f"The Topics page does not know of this run: {error}")


def index_of(home: Path, environment: str) -> TopicIndex:
    """The index of an environment, which need not be there."""
    return TopicIndex(topic_index_path(home, environment))


def life_of_topic(home: Path, environment: str, topic: str, *, most: int) -> Sequence[AuditLine]:
    """The last ``most`` lines of the audit log about a topic, newest first. Raises ``ArtifactError``."""
    return lines_of_topic(audit_folder(home), environment, topic, most=most)


def _write(run: Run) -> None:
    desired, (live, read_at, when) = run.read_desired(), _newest_live(run)
    plan = run.read_plan() if run.store.has(PLAN_FILE) else None
    is_of_plan = _topics_of_plan(run, plan)
    if is_of_plan is not None and not index_of(run.home, run.environment).path.exists():
        return  # nothing is known of the other topics
    changes, lines = _last_changes(run)
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
    topics = indexed_topics(live, desired.topics, _planned(run, plan, is_of_plan), changes, desired.left_out)
    write_topic_index(run.home, head, topics)


def _topics_of_plan(run: Run, plan: Plan | None) -> Callable[[str], bool] | None:
    """Which topics the plan is about; None: all."""
    if plan is None or not run.store.has(ASKED_SET):
        return needs_again(plan) if plan else None
    asked_about = {gated.change.topic for gated in plan.changes}
    return lambda name: name in asked_about


def _planned(
    run: Run, plan: Plan | None, is_of_plan: Callable[[str], bool] | None
) -> Mapping[str, Sequence[PlannedChange]]:
    outcomes = {outcome.digest: outcome for outcome in outcomes_so_far(run)}
    rejected = {digest: str(found) for digest, found in read_rejections(run.home, run.environment).items()}
    planned = planned_changes(plan, run=run.name, outcomes=outcomes, rejected=rejected)
    before = index_of(run.home, run.environment).planned() if is_of_plan else {}
    return {**{name: found for name, found in before.items() if is_of_plan and not is_of_plan(name)}, **planned}


def _newest_live(run: Run) -> tuple[ClusterSnapshot, datetime, FactsWhen]:
    """The snapshot after the changes, if the run has taken one; else its first one. With its time."""
    live, tables = run.read_live(), run.tables()
    if tables is not None and run.store.has(quality_file(AFTER)):
        from topicops.edges.tables.live_topics import read_live_topics
        from topicops.edges.tables.results import read_cluster

        after = tables.below(AFTER)
        checked_at = run.store.read_value(quality_file(AFTER), QualityReport).checked_at
        return read_cluster(after, live, read_live_topics(after)), checked_at, "after"
    reading = load_reading(run)
    return live, reading.read_at if reading else now(), "before"


def _last_changes(run: Run) -> tuple[Mapping[str, LastChange], int]:
    """By topic, and how many lines the audit log has. What the index of before knows is not read again."""
    known, count = _known_changes(run)
    log = read_audit_log(audit_folder(run.home), run.environment, may_begin_with=lambda line: line.n <= count + 1)
    lines = [line for line in log.lines if line.n > count]
    newer = {
        line.topic: LastChange(at=line.at, action=line.action, outcome=line.outcome, run=line.run, by=line.who)
        for line in lines
    }
    return {**known, **newer}, lines[-1].n if lines else count


def _known_changes(run: Run) -> tuple[Mapping[str, LastChange], int]:
    index = index_of(run.home, run.environment)
    try:
        return index.last_changes(), index.head().audit_lines
    except ArtifactError:  # there is none, or it is damaged: the whole log is read
        return {}, 0

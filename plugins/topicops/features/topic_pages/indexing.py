"""Keep the topic index, from which the Topics page is read, as the runs of an environment find the cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Literal, TypeVar

import msgspec

from topicops.edges.durable_files import as_artifact_error
from topicops.edges.home.audit_files import full_files, line_of, log_path, read_audit_log
from topicops.edges.places import Place
from topicops.features.shared.listed_partitions import ListedPartition, listed_partitions
from topicops.features.topic_pages.file import TopicIndex
from topicops.features.topic_pages.values import BrokerShare, IndexedTopic, IndexHead, LastChange, PlannedChange, Word
from topicops.flow.runs.kept import load_reading, reading_marks
from topicops.flow.runs.memory import read_rejections
from topicops.flow.runs.outcomes import outcomes_so_far
from topicops.flow.runs.questions import ASKED_SET
from topicops.flow.runs.run import COMMIT_ADDRESS, PLAN_FILE, EnvironmentRun, Run, audit_folder, now
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.errors import ArtifactError, TopicopsError
from topicops.model.memory import in_parts
from topicops.model.plans.changes import GateWord
from topicops.model.plans.delta import TopicClass, desired_row, live_row
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.facts import FactsWhen
from topicops.model.runs.results import (
    IN_PLACE,
    QUIET_FILE,
    Outcome,
    OutcomeStatus,
    QualityReport,
    QualitySuite,
    quality_file,
)
from topicops.model.specs.desired import DesiredTopic, Lifecycle
from topicops.steps.planning.diff import compare
from topicops.steps.planning.only import needs_again

T = TypeVar("T")
AFTER: QualitySuite = "after"
TOPICS_AT_ONCE = 2_000
CLASS_WORDS: Mapping[TopicClass, Word] = {
    TopicClass.MISSING: "missing",
    TopicClass.DIFFERENT: "different",
    TopicClass.TOMBSTONED: "to delete",
    TopicClass.PAUSED: "paused",
    TopicClass.UNMANAGED: "unmanaged",
}
CHANGING = (TopicClass.MISSING, TopicClass.DIFFERENT, TopicClass.TOMBSTONED)
"""Classes of topics that a change is due for."""
OUTCOME_WORDS: Mapping[OutcomeStatus, Word] = {
    OutcomeStatus.FAILED: "change failed",
    OutcomeStatus.UNKNOWN: "change failed",
    OutcomeStatus.REFUSED: "refused",
    OutcomeStatus.NOT_SENT: "refused",
    OutcomeStatus.MOVING: "moving",
}
"""States of a topic with a change that was to run and is not in place."""
GATE_WORDS: Mapping[GateWord, Word] = {GateWord.HELD: "held", GateWord.SKIPPED: "skipped"}


def index_topics(run: EnvironmentRun) -> None:
    """Write the index from what a run has left so far. A problem is a line of progress, and no more.

    A run with a part of the plan (``only``, or an approval) has all facts of the cluster; what the index of before says
    of the plan of other topics stays. A quiet run has found nothing different: then the index only learns when.
    """
    index = TopicIndex.of(run.home, run.environment)
    try:
        if not run.store.has(QUIET_FILE):
            _write(run, index)
        elif index.is_there():
            index.note_look(now(), reading_marks(run, "before"))
    except TopicopsError as error:
        run.progress(f"The Topics page stays as it was: {error}")


def life_of_topic(home: Place, environment: str, topic: str, *, most: int) -> Sequence[AuditLine]:
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
    if is_of_plan is not None and not index.is_there():
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
    topics = indexed_topics(live, desired.topics, planned, changes, desired.left_out)
    index.write(head, (topic for topic in topics if topic.name.startswith(desired.prefix)))


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


# ---- the rows ----


def indexed_topics(
    live: ClusterSnapshot,
    desired: Mapping[str, DesiredTopic],
    planned: Mapping[str, Sequence[PlannedChange]],
    changes: Mapping[str, LastChange],
    left_out: Collection[str] = (),
) -> Iterator[IndexedTopic]:
    """Yield each topic that is live or described, by name. A tombstone whose topic is gone is left out.

    The topics that are ``left_out`` are described in files with errors: it is not known how.
    """
    names = sorted({*live.topics, *desired})
    for start in range(0, len(names), TOPICS_AT_ONCE):
        part = names[start : start + TOPICS_AT_ONCE]
        alive, described = _read(live.topics, part), _read(desired, part)
        for name in part:
            topic, spec = alive.get(name), described.get(name)
            if topic is None and spec is not None and spec.lifecycle is Lifecycle.ABSENT:
                continue
            entries = tuple(planned.get(name, ()))
            yield _indexed(name, live, topic, spec, entries, changes.get(name), is_left_out=name in left_out)


def planned_changes(
    plan: Plan | None,
    *,
    run: str,
    outcomes: Mapping[str, Outcome] = MappingProxyType({}),
    rejected: Mapping[str, str] = MappingProxyType({}),
) -> Mapping[str, Sequence[PlannedChange]]:
    """Give what a plan has about each topic, by the outcomes so far and who rejected what, as a sentence, by digest."""
    found: dict[str, list[PlannedChange]] = defaultdict(list)
    for gated in plan.changes if plan else ():
        outcome = outcomes.get(gated.digest)
        if outcome is None or outcome.status not in IN_PLACE:
            word, reasons = _word_of(gated, outcome, rejected)
            anchor = f"change-{gated.digest[:12]}"
            found[gated.change.topic].append(
                PlannedChange(title=gated.change.action, word=word, run=run, reasons=reasons, anchor=anchor)
            )
    for blocked in plan.change_set.blocked if plan else ():
        reasons = (*blocked.wanted, *blocked.reasons, blocked.way_out)
        found[blocked.topic].append(
            PlannedChange(title="blocked", word="blocked", run=run, reasons=reasons, anchor=f"blocked-{blocked.topic}")
        )
    return found


def _word_of(
    gated: GatedChange, outcome: Outcome | None, rejected: Mapping[str, str]
) -> tuple[Word | Literal["run"], tuple[str, ...]]:
    """Say what became of the change, or else give the gate's word, with the reasons."""
    if outcome is not None:
        said = f"{outcome.status.value}: {outcome.message}" if outcome.message else ""
        return OUTCOME_WORDS[outcome.status], (said,) if said else ()
    if gated.gate is GateWord.HELD and gated.digest in rejected:
        return "rejected", (rejected[gated.digest],)
    return GATE_WORDS.get(gated.gate, "run"), gated.reasons


def _read(topics: Mapping[str, T], names: Sequence[str]) -> Mapping[str, T]:
    return next(in_parts(topics, [name for name in names if name in topics], size=TOPICS_AT_ONCE), {})


def _indexed(
    name: str,
    live: ClusterSnapshot,
    topic: LiveTopic | None,
    spec: DesiredTopic | None,
    planned: tuple[PlannedChange, ...],
    last_change: LastChange | None,
    *,
    is_left_out: bool,
) -> IndexedTopic:
    topic_class = compare(desired_row(spec) if spec else None, live_row(topic) if topic else None).topic_class
    is_going = name in live.deleting
    partitions = list(listed_partitions(live, topic)) if topic and not is_going else []
    knows_states = topic is not None and topic.states is not None
    healths = [partition.health for partition in partitions] if knows_states else []
    unhealthy: dict[Word, int] = {
        "offline": sum(health.is_offline for health in healths),
        "under min ISR": sum(health.refuses_all_acks for health in healths),
        "under-replicated": sum(health.is_under_replicated for health in healths),
    }
    states: dict[Word, bool] = {
        "deleted outside git": name in live.lost,
        "being deleted": is_going,
        "moving": topic is not None and (topic.is_reassigning or name in live.reassigning),
        "healthy": knows_states and not is_going and not any(unhealthy.values()),
    }
    words: set[Word] = {word for word, count in (unhealthy | states).items() if count}
    words |= {entry.word for entry in planned if entry.word != "run"}
    if topic_class in CLASS_WORDS and not (is_left_out and topic_class is TopicClass.UNMANAGED):
        words.add(CLASS_WORDS[topic_class])
    if last_change and last_change.outcome in OUTCOME_WORDS and topic_class in CHANGING:
        words.add(OUTCOME_WORDS[last_change.outcome])
    return IndexedTopic(
        name=name,
        words=frozenset(words),
        offline=unhealthy["offline"],
        under_min_isr=unhealthy["under min ISR"],
        under_replicated=unhealthy["under-replicated"],
        shares=tuple(_shares(partitions)),
        live=topic,
        desired=spec,
        planned=planned,
        last_change=last_change,
    )


def _shares(partitions: Sequence[ListedPartition]) -> Iterator[BrokerShare]:
    replicas = Counter(broker for partition in partitions for broker in partition.replicas)
    leaders = Counter(partition.leader for partition in partitions if partition.leader is not None)
    missing = Counter(broker for partition in partitions for broker in partition.health.missing)
    for broker in sorted({*replicas, *leaders}):
        yield BrokerShare(broker, replicas[broker], leaders[broker], missing[broker])

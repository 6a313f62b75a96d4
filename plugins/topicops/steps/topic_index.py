"""The rows of the topic index, from a snapshot, the files, the plan and the audit log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeVar

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.plans.changes import GateWord
from topicops.model.plans.delta import TopicClass, desired_row, live_row
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.runs.results import IN_PLACE, Outcome, OutcomeStatus
from topicops.model.runs.topic_index import (
    TROUBLE,
    BrokerShare,
    IndexedTopic,
    LastChange,
    PlannedChange,
    Word,
)
from topicops.model.specs.desired import DesiredTopic, Lifecycle
from topicops.model.topics_in_files import in_parts
from topicops.steps.listed_partitions import ListedPartition, listed_partitions
from topicops.steps.planning.diff import compare

T = TypeVar("T")
TOPICS_AT_ONCE = 2_000
CLASS_WORDS: Mapping[TopicClass, Word] = {
    TopicClass.MISSING: "missing",
    TopicClass.DIFFERENT: "different",
    TopicClass.TOMBSTONED: "to delete",
    TopicClass.PAUSED: "paused",
    TopicClass.UNMANAGED: "unmanaged",
}
CHANGING = (TopicClass.MISSING, TopicClass.DIFFERENT, TopicClass.TOMBSTONED)
"""Topics that a change is due for."""
OUTCOME_WORDS: Mapping[OutcomeStatus, Word] = {
    OutcomeStatus.FAILED: "change failed",
    OutcomeStatus.UNKNOWN: "change failed",
    OutcomeStatus.REFUSED: "refused",
    OutcomeStatus.NOT_SENT: "refused",
}
"""Of a change that was to run and is not in place."""
GATE_WORDS: Mapping[GateWord, Word] = {GateWord.HELD: "held", GateWord.SKIPPED: "skipped"}


def indexed_topics(
    live: ClusterSnapshot,
    desired: Mapping[str, DesiredTopic],
    planned: Mapping[str, Sequence[PlannedChange]],
    changes: Mapping[str, LastChange],
    left_out: Collection[str] = (),
) -> Iterator[IndexedTopic]:
    """Yield each topic that is live or described, by name. A tombstone whose topic is gone is left out.

    Args:
        planned: What the plan has about a topic, by name.
        left_out: Topics whose files have errors: described, and not known how.
    """
    names = sorted({*live.topics, *desired})
    for start in range(0, len(names), TOPICS_AT_ONCE):
        part = names[start : start + TOPICS_AT_ONCE]
        alive, described = _read(live.topics, part), _read(desired, part)
        for name in part:
            topic, spec = alive.get(name), described.get(name)
            if topic is None and spec is not None and spec.lifecycle is Lifecycle.ABSENT:
                continue
            yield _indexed(
                name, live, topic, spec, tuple(planned.get(name, ())), changes.get(name), is_left_out=name in left_out
            )


def planned_changes(
    plan: Plan | None,
    *,
    run: str,
    outcomes: Mapping[str, Outcome] = MappingProxyType({}),
    rejected: Mapping[str, str] = MappingProxyType({}),
) -> Mapping[str, Sequence[PlannedChange]]:
    """What a plan has about each topic.

    Args:
        run: The run with the plan, as ``<DAG>/<run id>``.
        outcomes: By digest, what came of the changes that a task has processed.
        rejected: By digest, who rejected a held change, as a sentence.
    """
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
    """What became of the change, or else the gate's word, with the reasons."""
    if outcome is not None:
        return OUTCOME_WORDS[outcome.status], (f"{outcome.status.value}: {outcome.message}",)
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
    delta = compare(desired_row(spec) if spec else None, live_row(topic) if topic else None)
    partitions = list(listed_partitions(live, topic)) if topic and name not in live.deleting else []
    knows_states = topic is not None and topic.states is not None
    offline, under_min, under_replicated = _troubles(partitions) if knows_states else (0, 0, 0)
    words: set[Word] = {entry.word for entry in planned if entry.word != "run"}
    if delta.topic_class in CLASS_WORDS and not (is_left_out and delta.topic_class is TopicClass.UNMANAGED):
        words.add(CLASS_WORDS[delta.topic_class])
    if last_change and last_change.outcome in OUTCOME_WORDS and delta.topic_class in CHANGING:
        words.add(OUTCOME_WORDS[last_change.outcome])
    health: tuple[tuple[Word, int], ...] = (
        ("offline", offline),
        ("under min ISR", under_min),
        ("under-replicated", under_replicated),
    )
    words |= {word for word, count in health if count}
    if name in live.lost:
        words.add("deleted outside git")
    if name in live.deleting:
        words.add("being deleted")
    if topic and (topic.is_reassigning or name in live.reassigning):
        words.add("moving")
    if knows_states and name not in live.deleting and not words & TROUBLE:
        words.add("healthy")
    shown = delta.live or delta.desired
    factor = max(topic.replication_factors, default=0) if topic else spec.replication_factor if spec else 0
    return IndexedTopic(
        name=name,
        topic_class=delta.topic_class,
        words=frozenset(words),
        partitions=shown.partitions if shown else 0,
        replication_factor=factor,
        offline=offline,
        under_min_isr=under_min,
        under_replicated=under_replicated,
        shares=tuple(_shares(partitions)),
        live=topic,
        desired=spec,
        changed=delta.changed,
        planned=planned,
        last_change=last_change,
    )


def _troubles(partitions: Sequence[ListedPartition]) -> tuple[int, int, int]:
    return (
        sum(partition.health.is_offline for partition in partitions),
        sum(partition.health.refuses_all_acks for partition in partitions),
        sum(partition.health.is_under_replicated for partition in partitions),
    )


def _shares(partitions: Sequence[ListedPartition]) -> Iterator[BrokerShare]:
    replicas = Counter(broker for partition in partitions for broker in partition.replicas)
    leaders = Counter(partition.leader for partition in partitions if partition.leader is not None)
    missing = Counter(broker for partition in partitions for broker in partition.health.missing)
    for broker in sorted({*replicas, *leaders}):
        yield BrokerShare(broker=broker, replicas=replicas[broker], leaders=leaders[broker], missing=missing[broker])

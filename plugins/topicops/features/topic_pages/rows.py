"""The rows of the topic index, from a snapshot, the files, the plan and the audit log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeVar

from topicops.features.shared.listed_partitions import ListedPartition, listed_partitions
from topicops.features.topic_pages.values import BrokerShare, IndexedTopic, LastChange, PlannedChange, Word
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.memory import in_parts
from topicops.model.plans.changes import GateWord
from topicops.model.plans.delta import TopicClass, desired_row, live_row
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.runs.results import IN_PLACE, Outcome, OutcomeStatus
from topicops.model.specs.desired import DesiredTopic, Lifecycle
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
"""Classes of topics that a change is due for."""
OUTCOME_WORDS: Mapping[OutcomeStatus, Word] = {
    OutcomeStatus.FAILED: "change failed",
    OutcomeStatus.UNKNOWN: "change failed",
    OutcomeStatus.REFUSED: "refused",
    OutcomeStatus.NOT_SENT: "refused",
}
"""States of a topic with a change that was to run and is not in place."""
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
            entries = tuple(planned.get(name, ()))
            yield _indexed(name, live, topic, spec, entries, changes.get(name), is_left_out=name in left_out)


def planned_changes(
    plan: Plan | None,
    *,
    run: str,
    outcomes: Mapping[str, Outcome] = MappingProxyType({}),
    rejected: Mapping[str, str] = MappingProxyType({}),
) -> Mapping[str, Sequence[PlannedChange]]:
    """Give what a plan has about each topic.

    Args:
        run: Run with the plan, as ``<DAG>/<run id>``.
        outcomes: What came of the changes that a task has processed, by digest.
        rejected: Who rejected a held change, as a sentence, by digest.
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
    """Say what became of the change, or else give the gate's word, with the reasons."""
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

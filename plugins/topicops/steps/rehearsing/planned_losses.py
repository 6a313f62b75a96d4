"""The loss of each rack before a plan and after it, counted in one pass over the topics of a snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from topicops.model.cluster.broker_defaults import is_known
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.changes import Change
from topicops.model.plans.rack_losses import Loss, RackLossRow, RackLossTable
from topicops.model.specs.topic_config import MIN_ISR
from topicops.model.topics_in_files import in_parts
from topicops.steps.rehearsing.partitions import Fate, Kind, Racks, fate_of, kinds_of
from topicops.steps.rehearsing.rehearse import Stage

TOPICS_AT_ONCE = 2_000
TOPICS_PLAYED_AT_ONCE = 50
"""A played controller looks at all its topics after each change, so many small ones are quicker than a large one."""
Kinds = Counter[Kind]
"""How many partitions there are of each kind."""


def planned_losses(live: ClusterSnapshot, changes: Sequence[Change]) -> RackLossTable:
    """Lose each rack in turn, on a snapshot with states, and on what all these changes would make of it."""
    racks, known = Racks.of(live), is_known(live.default_of(MIN_ISR))
    if not racks.one_can_be_lost:
        only = next(iter(racks.brokers), None)
        return RackLossTable(only_rack=only, brokers_without_rack=racks.without, knows_broker_defaults=known)
    before, after = _before_and_after(live, changes)
    everything = _fates(before | after, live.brokers)
    rows = []
    for rack, brokers in racks.brokers.items():
        fates = _fates(before | after, live.brokers.keys() - brokers)
        rows.append(
            RackLossRow(
                rack=rack,
                brokers=len(brokers),
                before=_loss(before, everything, fates),
                after=_loss(after, everything, fates),
            )
        )
    return RackLossTable(racks=tuple(rows), brokers_without_rack=racks.without, knows_broker_defaults=known)


def _before_and_after(live: ClusterSnapshot, changes: Sequence[Change]) -> tuple[Kinds, Kinds]:
    """Topics of no change are counted once, a part of them at a time; topics that are being deleted not at all."""
    by_topic: dict[str, list[Change]] = {}
    for change in changes:
        by_topic.setdefault(change.topic, []).append(change)
    names = sorted(live.topics.keys() - live.deleting.keys())
    others = _counted(live, [name for name in names if name not in by_topic])
    touched, made = _counted(live, [name for name in names if name in by_topic]), Kinds()
    for topics in _some_at_once(list(by_topic)):
        made += _made(live, [change for topic in topics for change in by_topic[topic]])
    return others + touched, others + made


def _some_at_once(topics: Sequence[str]) -> Iterator[Sequence[str]]:
    return (topics[start : start + TOPICS_PLAYED_AT_ONCE] for start in range(0, len(topics), TOPICS_PLAYED_AT_ONCE))


def _made(live: ClusterSnapshot, changes: Sequence[Change]) -> Kinds:
    """Of the topics of these changes, afterwards."""
    stage = Stage(live, {change.topic for change in changes}, is_kraft=live.source == "kafka")
    for change in changes:
        stage.play(change)
    staying = (topic for name, topic in stage.topics.items() if name not in stage.deleting)
    return Kinds(kind for topic in staying for _, kind in kinds_of(live, topic))


def _counted(live: ClusterSnapshot, names: Sequence[str]) -> Kinds:
    found = Kinds()
    for part in in_parts(live.topics, names, size=TOPICS_AT_ONCE):
        found.update(kind for topic in part.values() for _, kind in kinds_of(live, topic))
    return found


def _fates(kinds: Collection[Kind], live: Collection[int]) -> Mapping[Kind, Fate]:
    return {kind: fate_of(kind, live) for kind in kinds}


def _loss(kinds: Kinds, now: Mapping[Kind, Fate], then: Mapping[Kind, Fate]) -> Loss:
    """What is offline or below its minimum already is not counted."""
    return Loss(
        offline=sum(count for kind, count in kinds.items() if now[kind].loses_leader(then[kind])),
        below_min_isr=sum(count for kind, count in kinds.items() if now[kind].loses_min_isr(then[kind])),
        moved_leaders=sum(count for kind, count in kinds.items() if now[kind].changes_leader(then[kind])),
    )

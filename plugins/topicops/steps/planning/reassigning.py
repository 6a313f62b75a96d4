"""Moves of replicas: why a topic needs one, what stands against it, and the rows that its partitions get."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic, LogDirectories
from topicops.model.codes import Code
from topicops.model.errors import DiffError
from topicops.model.json_types import canonical_json
from topicops.model.plans.changes import Change, MoveReason, Precondition, ReassignTopic
from topicops.model.printable import plural
from topicops.model.release import ALTER_REASSIGNMENTS, CAPPED_MIN_ISR, REASSIGNMENTS, REASSIGNMENTS_IN_TOPICS
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment, Risk
from topicops.model.specs.spellings import EPOCH
from topicops.model.specs.topic_config import MIN_ISR, canonical_overrides
from topicops.steps.before_deletes import REPAIR
from topicops.steps.planning.blocking import (
    Finding,
    Situation,
    beside_failed,
    closed_of,
    min_isr_values,
    moves_command,
    unstable,
    with_failed_disk,
)
from topicops.steps.planning.placement.balanced import spread_leaders
from topicops.steps.planning.placement.load import Tally
from topicops.steps.planning.placement.request import Load

RUN_REASSIGNMENT = "run the reassignment that the plan carries with Kafka's own tool"
NO_RACKS: Mapping[int, str | None] = MappingProxyType({})


# ---- why ----


def move_reason(situation: Situation) -> MoveReason | None:
    """Return why replicas of the topic's live partitions are to move; None: they stay where they are."""
    topic, desired = situation.topic, situation.desired
    if topic is None or situation.moves_out_of_sight:
        return None
    if _rows_by_hand(situation):
        return MoveReason.ASSIGNMENT
    if not situation.is_unmanaged and topic.replication_factors != {desired.replication_factor}:
        return MoveReason.FACTOR
    return MoveReason.DRAIN if _is_drained(situation, topic) else None


def _rows_by_hand(situation: Situation) -> Assignment:
    """Return the rows that the file gives to live partitions in another way than they are."""
    live = situation.topic.target_assignment if situation.topic else {}
    rows = situation.desired.assignment or {}
    return {p: tuple(rows[p]) for p in sorted(rows) if p in live and tuple(rows[p]) != live[p]}


def _is_drained(situation: Situation, topic: LiveTopic) -> bool:
    draining = situation.live.draining
    if not draining or situation.is_managed or refusal_of(situation.live, situation.environment):
        return False
    return any(not draining.isdisjoint(row) for row in topic.target_assignment.values())


# ---- what stands against it ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why topicops does not move the replicas of a topic."""

    code: Code
    """Code where nothing but a drain asks for the move."""
    way_out: str
    reason: str = ""
    """A clause; empty where the way out says it."""
    by_tool: bool = False
    """Whether Kafka's own tool may do it."""


def refusal_of(live: ClusterSnapshot, environment: Environment) -> Obstacle | None:
    """Return why no replica of any topic is moved in this environment."""
    if environment.spec.policy.reassign == "refuse":
        reason = f"policy.reassign refuses moves ({environment.place_of('policy.reassign')})"
        return Obstacle(code=Code.REPLICATION_FACTOR, reason=reason, way_out=RUN_REASSIGNMENT, by_tool=True)
    for ability in (ALTER_REASSIGNMENTS, REASSIGNMENTS):
        brokers = live.missing_requests.get(str(ability), ())
        if brokers and not _runs_old_brokers(live, environment):
            reason = f"{brokers_text(brokers)} do{'es' if len(brokers) == 1 else ''} not offer {ability}"
            way_out = f"ask who runs the brokers for it: Kafka's own brokers offer it since {ability.since}"
            return Obstacle(code=Code.REQUEST_NOT_OFFERED, reason=reason, way_out=way_out)
    if not _runs_old_brokers(live, environment):
        return None
    shown = f"the brokers run Kafka {live.releases.oldest}" if live.releases else "the brokers' release is not known"
    reason = (
        f"{shown}: before {REASSIGNMENTS_IN_TOPICS} only a write under Kafka's ZooKeeper paths could start a move, and "
        "nothing could cancel it"
    )
    return Obstacle(code=Code.OLD_BROKERS, reason=reason, way_out=RUN_REASSIGNMENT, by_tool=True)


def _runs_old_brokers(live: ClusterSnapshot, environment: Environment) -> bool:
    """Return whether a broker may be of a release without the requests for moves; what is not proved counts so."""
    if live.releases is not None:
        return live.releases.oldest < REASSIGNMENTS_IN_TOPICS
    is_written = "cluster.kafkaVersion" in environment.locations or live.source == "kafka"
    return not is_written or environment.spec.cluster.release < REASSIGNMENTS_IN_TOPICS


def obstacle(situation: Situation) -> Obstacle | None:
    """Return what must be done before the replicas of this topic can move; None: nothing."""
    if situation.is_reassigning:
        return _running(situation)
    if situation.is_managed:
        return Obstacle(code=Code.NO_PLACEMENT, way_out="ask who runs the cluster to move the replicas")
    return _unfit(situation) or refusal_of(situation.live, situation.environment)


def _running(situation: Situation) -> Obstacle:
    if not situation.is_accepted:
        return Obstacle(
            code=Code.REASSIGNMENT_RUNS,
            reason="a reassignment of this topic is running",
            way_out="wait until the reassignment that is running has ended",
        )
    cancel = moves_command(situation.environment.name, cancel=situation.desired.name)
    return Obstacle(
        code=Code.REASSIGNMENT_RUNS,
        reason="its replicas move already, or wait for it, by an approved change",
        way_out=f"wait until they have moved, or take them back with {cancel}",
    )


def _unfit(situation: Situation) -> Obstacle | None:
    """Return what keeps the topic's replicas from the brokers that they are to be on."""
    topic, live = situation.topic, situation.live
    rows = topic.target_assignment if topic else {}
    by_hand = situation.desired.assignment or {}
    added = {b for p, row in by_hand.items() if p in rows for b in row if b not in rows[p]}
    if failed := with_failed_disk(situation, added):
        return Obstacle(code=Code.FAILED_LOG_DIRECTORY, way_out=f"{REPAIR}: {failed}")
    drained = {b for row in by_hand.values() for b in row} & live.draining
    if closed := closed_of(situation, added | drained):
        return Obstacle(
            code=Code.NO_PLACEMENT, reason=f"the assignment names {closed}", way_out=f"name other brokers than {closed}"
        )
    if dead := (added | drained) - live.brokers.keys():
        return Obstacle(
            code=Code.ASSIGNED_BROKER_DOWN,
            reason=f"the assignment names {brokers_text(dead)}, not live",
            way_out=f"start {brokers_text(dead)}",
        )
    takers, keepers = live.whole_racks, live.racks_to_stay
    sizes = _sizes(situation)
    if by_hand or all(sizes[p] <= len(takers.keys() | keepers.keys() & set(row)) for p, row in rows.items()):
        return None
    needed, beside = max(sizes.values()), beside_failed(situation)
    return Obstacle(
        code=Code.TOO_FEW_BROKERS,
        reason=f"replication factor {needed} needs as many brokers; {len(takers)} may get replicas{beside}",
        way_out=f"start brokers until {needed} are live{beside}",
    )


def _sizes(situation: Situation) -> Mapping[int, int]:
    """Return how many replicas each live partition is to have."""
    rows = situation.topic.target_assignment if situation.topic else {}
    wanted = situation.desired.replication_factor
    return {p: len(row) if situation.is_unmanaged else wanted for p, row in rows.items()}


def move_codes(situation: Situation) -> tuple[Code, ...]:
    """Return the codes of what differs."""
    topic, wanted = situation.topic, situation.desired.replication_factor
    if topic is None or situation.moves_out_of_sight:
        return ()
    if situation.is_unmanaged:
        return (Code.UNMANAGED_MOVE,)
    mixed = Code.MIXED_REPLICATION_FACTOR if len(topic.replication_factors) > 1 else Code.REPLICATION_FACTOR
    found = {mixed: topic.replication_factors != {wanted}, Code.ASSIGNMENT_DIFFERS: bool(_rows_by_hand(situation))}
    return tuple(sorted(code for code, holds in found.items() if holds))


def move_findings(situation: Situation) -> tuple[Finding, ...]:
    """Return why replicas that are to move cannot; nothing where none are to move, or they can."""
    if move_reason(situation) is None:
        return ()
    if found := obstacle(situation):
        return tuple(_differences(situation, found))
    problem = _min_isr_problem(situation, _min_isr_of_file(situation))
    return (problem,) if problem else ()


def _differences(situation: Situation, found: Obstacle) -> Iterator[Finding]:
    """Yield a finding for each thing that only a move would change."""
    differing = False
    for code in move_codes(situation):
        match code:
            case Code.REPLICATION_FACTOR | Code.MIXED_REPLICATION_FACTOR:
                differing = True
                yield _other_factor(situation, found)
            case Code.ASSIGNMENT_DIFFERS:
                differing = True
                yield _other_rows(situation, found)
    if not differing:
        named = brokers_text(situation.live.draining)
        reason = f"its replicas cannot leave {named} (cluster.draining){_why_not(found)}"
        yield Finding(found.code, reason, _way_to_move(found))


def _other_factor(situation: Situation, found: Obstacle) -> Finding:
    wanted = situation.desired.replication_factor
    present = sorted(situation.topic.replication_factors if situation.topic else ()) or [0]
    if len(present) > 1:
        reason = f"partitions have {' and '.join(map(str, present))} replicas; the spec wants {wanted} for each"
        return Finding(
            Code.MIXED_REPLICATION_FACTOR, f"{reason}{_why_not(found)}", _way_to_move(found), "replicationFactor"
        )
    state = "accepted" if situation.is_accepted else "live"
    reason = f"replication factor {wanted} wanted, {present[0]} {state}; only a reassignment can change it"
    way_out = f"{_way_to_move(found)}, or set replicationFactor: {present[0]} in the spec"
    return Finding(Code.REPLICATION_FACTOR, f"{reason}{_why_not(found)}", way_out, "replicationFactor")


def _other_rows(situation: Situation, found: Obstacle) -> Finding:
    moved, live = _rows_by_hand(situation), situation.topic.target_assignment if situation.topic else {}
    first, row = next(iter(moved.items()))
    more = f"; {len(moved)} partitions differ" if len(moved) > 1 else ""
    reason = f"partition {first} is on {list(live[first])}, the spec says {list(row)}{more}"
    way_out = f"{_way_to_move(found)}, or write the live assignment into the spec"
    return Finding(Code.ASSIGNMENT_DIFFERS, f"{reason}{_why_not(found)}", way_out, "assignment")


def _why_not(found: Obstacle) -> str:
    return f"; {found.reason}" if found.reason else ""


def _way_to_move(found: Obstacle) -> str:
    """Return what a person does to move the replicas."""
    return f"{found.way_out}, then plan again"


# ---- min.insync.replicas ----


def _min_isr_of_file(situation: Situation) -> set[int | None]:
    topic = situation.topic
    own = canonical_overrides(topic.overrides).get(MIN_ISR) if topic else None
    return min_isr_values(situation, situation.edits.after.get(MIN_ISR, own))


def _min_isr_problem(situation: Situation, values: Collection[int | None]) -> Finding | None:
    """Return where producers with ``acks=all`` would be refused by the move, while it runs or for good.

    Args:
        values: What ``min.insync.replicas`` may be; None among them: not known, and the worst counts.
    """
    return _too_few_meanwhile(situation, values) or _too_few_afterwards(situation, values)


def _too_few_meanwhile(situation: Situation, values: Collection[int | None]) -> Finding | None:
    """Replicas that are being added count for the cap of ``min.insync.replicas``, and they are not in sync yet.

    Source: kafka.cluster.Partition#effectiveMinIsr (3.7 and later). Before, nothing is capped, so nothing gets worse.
    """
    releases, sizes = situation.live.releases, _sizes_meanwhile(situation)
    if releases is not None and releases.newest < CAPPED_MIN_ISR:
        return None
    in_sync = _in_sync(situation)
    short = [p for p, (now, then) in sizes.items() if any(_is_short(in_sync[p], now, then, value) for value in values)]
    if not short:
        return None
    fewest = max(1, min(in_sync[p] for p in short))
    which = f"partition{'s' if short[1:] else ''} {', '.join(map(str, short[:10]))}"
    reason = (
        f"{_shown(values)}, and of {which} only {fewest} {'is' if fewest == 1 else 'are'} in sync: since Kafka "
        f"{CAPPED_MIN_ISR} producers with acks=all are refused until the new replicas are in sync"
    )
    first = f"set {MIN_ISR}: {fewest} {_where(situation)} and apply that"
    way_out = f"{first}, then let the replicas move, and raise it again when they are in sync"
    return Finding(Code.MIN_ISR_ABOVE_ISR, reason, way_out, _field_of(situation))


def _is_short(in_sync: int, now: int, then: int, value: int | None) -> bool:
    """Return whether a partition of ``now`` replicas takes records, and refuses them while it has ``then``."""
    if value is None:
        return then > now and in_sync < then
    return min(value, now) <= in_sync < min(value, then)


def _too_few_afterwards(situation: Situation, values: Collection[int | None]) -> Finding | None:
    rows = situation.topic.target_assignment if situation.topic else {}
    fewer = [size for p, size in _sizes(situation).items() if size < len(rows[p])]
    if not fewer or all(value is not None and value <= min(fewer) for value in values):
        return None
    reason = f"{_shown(values)}, and the replication factor is to be {min(fewer)}"
    way_out = f"set {MIN_ISR}: {min(fewer)} {_where(situation)} and apply that, then lower the replication factor"
    return Finding(Code.MIN_ISR_ABOVE_ISR, reason, way_out, _field_of(situation))


def _shown(values: Collection[int | None]) -> str:
    known = [value for value in values if value is not None]
    unknown = f"{MIN_ISR} is not known on every broker"
    return unknown if None in values else f"{MIN_ISR} is {max(known, default=1)}"


def _where(situation: Situation) -> str:
    return "on the topic (kafka-configs)" if situation.is_unmanaged else "in its file"


def _field_of(situation: Situation) -> str:
    return "assignment" if situation.desired.assignment else "replicationFactor"


def _sizes_meanwhile(situation: Situation) -> Mapping[int, tuple[int, int]]:
    """Return how many replicas each partition has now, and while it moves: those of both sides together."""
    rows, sizes = (situation.topic.target_assignment if situation.topic else {}), _sizes(situation)
    if situation.desired.assignment is not None:
        moved = _rows_by_hand(situation)
        return {p: (len(row), len({*row, *moved.get(p, ())})) for p, row in rows.items()}
    racks, takers = _racks(situation)
    rack_of = _rack_of(racks)
    open_racks = {rack_of[broker] for broker in takers}
    return {
        p: (len(row), len(row) + sizes[p] - kept)
        for p, row in rows.items()
        if (len(row) != sizes[p] or not racks.keys() >= set(row))
        and (kept := kept_replicas(row, sizes[p], rack_of, open_racks)) < sizes[p]
    }


def _in_sync(situation: Situation) -> Mapping[int, int]:
    """Return how many replicas of each partition are in sync; the live ones, where the states were not read."""
    topic, live = situation.topic, situation.live
    if topic is None:
        return {}
    if topic.states is None:
        return {p: sum(broker in live.brokers for broker in row) for p, row in topic.target_assignment.items()}
    return {p: len(topic.states[p].isr) if p in topic.states else 0 for p in topic.target_assignment}


def later_move(situation: Situation) -> str:
    """Return why the replicas stay in this run, although other changes of the topic run; empty: they move now."""
    why, grows, configs = move_reason(situation), situation.grows, situation.edits.after
    if why is None or not (grows or configs):
        return ""
    if grows and why is not MoveReason.ASSIGNMENT:
        return "the replicas of the present partitions move in a later run: a topic that moves gets no partitions"
    findings = move_findings(situation)
    if why is MoveReason.DRAIN and findings:
        return f"its replicas stay on {brokers_text(situation.live.draining)}: {findings[0].reason}"
    if MIN_ISR in configs and not findings:
        present = min_isr_values(situation, situation.edits.before[MIN_ISR])
        if _min_isr_problem(situation, present):
            return f"its replicas move in a later run, once this value of {MIN_ISR} is live"
    return ""


# ---- the change ----


def reassign(situation: Situation, load: Load) -> ReassignTopic:
    """Return the change that moves the topic's replicas."""
    topic, why, desired = situation.topic, move_reason(situation), situation.desired
    rows = wanted_rows(situation, load)
    if topic is None or why is None or not rows:
        raise DiffError(f"{desired.name}: its replicas must move, and no row differs")
    before = {p: topic.target_assignment[p] for p in sorted(rows)}
    field = {MoveReason.FACTOR: "replicationFactor", MoveReason.ASSIGNMENT: "assignment"}.get(why, "")
    change = ReassignTopic(
        topic=topic.name,
        owner=desired.owner,
        location=desired.location_of(field),
        risk=Risk.RISKY,
        codes=move_codes(situation),
        reversible=True,
        precondition=Precondition(identity=topic.identity),
        notes=tuple(_notes(situation)),
        why=why,
        assignment_before=before,
        assignment={p: rows[p] for p in sorted(rows)},
        copied_bytes=copied_bytes(topic.name, before, rows, situation.live),
    )
    return rated(change)


def rated(change: ReassignTopic) -> ReassignTopic:
    """Return the change with its risk: another order of the same replicas copies nothing."""
    return replace(change, risk=Risk.NOTICE if change.is_order_only else Risk.RISKY)


def _notes(situation: Situation) -> Iterator[str]:
    if situation.grows:
        yield "its new partitions come in a later run, because a topic that moves gets none"
    if situation.live.releases is None:
        written = situation.environment.spec.cluster.release
        yield f"the brokers did not tell their releases; kafkaVersion of the environment, {written}, counts"


def wanted_rows(situation: Situation, load: Load) -> Assignment:
    """Return the new rows of the live partitions that move; none where the brokers cannot hold them."""
    topic, desired = situation.topic, situation.desired
    if topic is None:
        return {}
    if desired.assignment is not None:
        return _rows_by_hand(situation)
    racks, takers = _racks(situation)
    size = None if situation.is_unmanaged else desired.replication_factor
    staying = {broker: rack for broker, rack in racks.items() if broker not in takers}
    wanted = resized(topic.target_assignment, size, {b: racks[b] for b in takers}, load=load, staying=staying)
    return {p: row for p, row in (wanted or {}).items() if row != topic.target_assignment[p]}


def _racks(situation: Situation) -> tuple[Mapping[int, str | None], Collection[int]]:
    """Return the rack of each broker that may have replicas of the topic, and those brokers that may get new ones."""
    live = situation.live
    racks = {**live.racks_to_stay, **live.whole_racks}
    return (racks if situation.desired.rack_aware else dict.fromkeys(racks)), live.whole_racks.keys()


def reassignment_of(situation: Situation, load: Load) -> str | None:
    """Return the JSON for Kafka's own tool, where it may do what topicops does not; else None."""
    found = obstacle(situation)
    if move_reason(situation) is None or found is None or not found.by_tool:
        return None
    rows = wanted_rows(situation, load)
    return reassignment_json(situation.desired.name, rows) if rows else None


def copied_bytes(topic: str, before: Assignment, after: Assignment, live: ClusterSnapshot) -> int | None:
    """Return the bytes to copy, all new replicas together; None means not known.

    A broker tells the bytes of all its logs of a topic together, so that a replica counts as their average on a live
    broker of its partition, the preferred leader where that answers.
    """
    copied = 0.0
    for partition, row in after.items():
        if added := len({*row} - {*before[partition]}):
            sizes = (_average_log(topic, partition, broker, live) for broker in before[partition])
            size = next((size for size in sizes if size is not None), None)
            if size is None:
                return None
            copied += added * size
    return round(copied)


def _average_log(topic: str, partition: int, broker: int, live: ClusterSnapshot) -> float | None:
    told = (live.log_directories or {}).get(broker)
    if not isinstance(told, LogDirectories) or partition not in told.held.get(topic, ()):
        return None
    return told.log_bytes.get(topic, 0) / len(told.held[topic])


def move_obstacles(
    changes: Iterable[Change], live: ClusterSnapshot, environment: Environment
) -> Mapping[str, tuple[str, ...]]:
    """Return why the moves of a topic cannot begin now, by topic; topics without a reason have no entry.

    Args:
        live: As it was read, with the states of these topics.
    """
    moves = [change for change in changes if isinstance(change, ReassignTopic)]
    foreign = list(_foreign(live, environment)) if moves else []
    found = {c.topic: (*_topic_obstacles(c, live, environment), *foreign) for c in moves}
    return {topic: reasons for topic, reasons in found.items() if reasons}


def _foreign(live: ClusterSnapshot, environment: Environment) -> Iterator[str]:
    moving, allowed = live.foreign_moves, environment.spec.limits.moves_at_once
    if moving >= allowed:
        place = environment.place_of("limits.movesAtOnce")
        yield (
            f"{Code.REASSIGNMENT_RUNS}: {plural(moving, 'partition')} move{'s' if moving == 1 else ''} by other "
            f"programs, and {allowed} may move at once ({place})"
        )


def _topic_obstacles(change: ReassignTopic, live: ClusterSnapshot, environment: Environment) -> Iterator[str]:
    topic = live.topics.get(change.topic)
    if topic is None:
        return
    draining = frozenset(environment.spec.cluster.draining)
    after = {**topic.target_assignment, **change.assignment}
    held = {b for row in topic.target_assignment.values() for b in row} - draining
    if dead := (held | {b for row in after.values() for b in row}) - live.brokers.keys():
        are = "are" if len(dead) > 1 else "is"
        yield f"{Code.BROKER_DOWN}: {brokers_text(dead)} {are} to have replicas of it, and {are} not live"
    if topic.states is None:
        yield "the ISR of its partitions was not read"
        return
    for p, row in topic.target_assignment.items():
        stay = set(row) & set(after[p])
        in_sync = stay & set(topic.states[p].isr) if p in topic.states else set()
        if len(in_sync) < len(stay):
            yield f"partition {p} is under-replicated: {sorted(in_sync)} of {sorted(stay)} are in sync"
            return


# ---- moves that no file asks for ----


def as_it_is(topic: LiveTopic, environment: Environment) -> DesiredTopic:
    """Return what a file of the live topic would ask for; the place is that of ``cluster.draining``."""
    return DesiredTopic(
        name=topic.name,
        owner="",
        location=environment.locations.get("cluster.draining", Location(environment.file, 1, 1)),
        partitions=topic.partitions,
        replication_factor=max(topic.replication_factors, default=0),
        configs=dict(canonical_overrides(topic.overrides)),
    )


def is_of_command(change: ReassignTopic, environment: Environment) -> bool:
    """Return whether no file asks for such a move: for racks or balance, or off a broker outside the drain's list."""
    draining = frozenset(environment.spec.cluster.draining)
    return change.why in (MoveReason.RACKS, MoveReason.BALANCE) or (
        change.why is MoveReason.DRAIN and draining.isdisjoint(change.removed.keys())
    )


def command_problems(
    change: ReassignTopic, desired: Desired, live: ClusterSnapshot, environment: Environment
) -> Iterator[str]:
    """Yield why a move that a command asks for must not run: what blocks a move, and what its file says.

    Args:
        live: With ``draining``, the brokers' answers, and the states of the topic.
    """
    topic, described = live.topics.get(change.topic), desired.topics.get(change.topic)
    if topic is None:
        return
    if described is None and change.why is MoveReason.DRAIN and environment.spec.policy.drain_unmanaged == "refuse":
        place = environment.place_of("policy.drainUnmanaged")
        yield f"no file describes the topic, and policy.drainUnmanaged refuses to move it ({place})"
    elif described is not None:
        yield from _contradictions(change, described)
    situation = Situation(
        desired=replace(described or as_it_is(topic, environment), assignment=change.assignment),
        topic=topic,
        live=live,
        environment=environment,
        now=EPOCH,
        names_by_folded={},
        is_unmanaged=described is None,
    )
    if found := obstacle(situation):
        yield found.reason or found.way_out
    else:
        yield from (finding.reason for finding in (unstable(situation), *move_findings(situation)) if finding)
    racks = live.racks
    for partition, row in change.assignment.items():
        before = change.assignment_before[partition]
        if len({racks.get(b) or b for b in row}) < len({racks[b] or b for b in before if b in racks}):
            yield f"the replicas of partition {partition}, {list(row)}, are on fewer racks than {list(before)}"


def _contradictions(change: ReassignTopic, desired: DesiredTopic) -> Iterator[str]:
    if desired.lifecycle is not Lifecycle.PRESENT:
        yield f"its file says {desired.lifecycle} ({desired.location})"
    elif desired.assignment is not None:
        yield f"its file gives its replicas by hand ({desired.location_of('assignment')})"
    elif {len(row) for row in change.assignment.values()} != {desired.replication_factor}:
        place = desired.location_of("replicationFactor")
        yield f"its file asks for replication factor {desired.replication_factor} ({place})"


# ---- rows ----


def reassignment_json(topic: str, rows: Assignment) -> str:
    """Return what ``kafka-reassign-partitions --reassignment-json-file`` reads."""
    partitions = [{"topic": topic, "partition": p, "replicas": list(rows[p])} for p in sorted(rows)]
    return canonical_json({"version": 1, "partitions": partitions})


def resized(
    rows: Assignment,
    replication_factor: int | None,
    racks: Mapping[int, str | None],
    *,
    load: Load,
    staying: Mapping[int, str | None] = NO_RACKS,
    is_spread: bool = False,
) -> Assignment | None:
    """Return the rows with this replication factor and the fewest moves: replicas stay wherever they may.

    A row that has the right length, on these brokers, stays as it is. Of every other row as many replicas stay as
    ``kept_replicas`` says. Leaders stay too, unless the topic's leaders become less even.

    Args:
        replication_factor: None: each row keeps its length.
        racks: Rack by broker that may get replicas. Where only some have one, racks do not count.
        load: The cluster's, this topic included.
        staying: Rack by broker that keeps its replicas, and gets no others.
        is_spread: A row changes, too, that has replicas on one rack although another rack is free.

    Returns:
        None: a row has more replicas than there are brokers for it.
    """
    everyone = {**staying, **racks}
    sizes = {p: len(row) if replication_factor is None else replication_factor for p, row in rows.items()}
    if not all(0 <= sizes[p] <= len(racks.keys() | everyone.keys() & set(row)) for p, row in rows.items()):
        return None
    if replication_factor is not None and replication_factor < 1:
        return None
    rack_of = _rack_of(everyone)
    tally = Tally(rack_of, topic=Load.of([rows]), cluster=load, closed=staying.keys() - racks.keys())
    open_racks, found = {rack_of[broker] for broker in racks}, dict[int, tuple[int, ...]]()
    for partition, row in sorted(rows.items()):
        kept = kept_replicas(row, sizes[partition], rack_of, open_racks)
        if len(row) != sizes[partition] or not everyone.keys() >= set(row) or (is_spread and kept < len(row)):
            stay = [broker for broker in row if broker in rack_of]
            found[partition] = tally.grown(tally.shrunk(stay, kept), sizes[partition])
    return {**rows, **_with_leaders(tally.evened(found, rows), rows)}


def kept_replicas(row: Iterable[int], size: int, rack_of: Mapping[int, str], open_racks: Collection[str]) -> int:
    """Return how many replicas of a row stay if it gets ``size``: one for each rack, and more where racks run out.

    Args:
        rack_of: Rack by broker on which replicas may be.
        open_racks: Racks of those brokers that may get new ones.
    """
    stay = [rack_of[broker] for broker in row if broker in rack_of]
    spread, usable = len(set(stay)), len({*stay, *open_racks})
    return min(size, spread + min(len(stay) - spread, max(0, size - usable)))


def _rack_of(racks: Mapping[int, str | None]) -> dict[int, str]:
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    return known if len(known) == len(racks) else {broker: str(broker) for broker in racks}


def _with_leaders(changed: Assignment, rows: Assignment) -> Assignment:
    """Return the changed rows, each with a leader. Other topics do not count: they would make more leaders move.

    Rows that lost their leader choose first. The others choose anew only if that makes the topic more even still.
    """
    others = Load.of([{p: row for p, row in rows.items() if p not in changed}])
    kept = {p: rows[p][:1] for p, row in changed.items() if rows[p] and rows[p][0] in row}
    leaders = {p: row[0] for p, row in spread_leaders({**changed, **kept}, topic=others, cluster=others).items()}
    ordered = {p: (leaders[p], *(broker for broker in row if broker != leaders[p])) for p, row in changed.items()}
    return spread_leaders(ordered, topic=others, cluster=others)

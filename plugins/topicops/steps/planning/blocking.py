"""Why a topic is blocked: one function for each rule, with its code, its reason and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from topicops.model.cluster.broker_defaults import Default, brokers_text, possible
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic, LogDirectories
from topicops.model.codes import Code
from topicops.model.plans.changes import MoveReason
from topicops.model.plans.plan import ActivityOfHiddenGroups, TopicActivity
from topicops.model.release import (
    ALL_OVERRIDES,
    COMMITS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_BY_ID,
    DELETE_TOPICS,
    DESCRIBE_GROUPS,
    END_OFFSETS,
    LAST_RECORDS,
    LIST_GROUPS,
    REASSIGNMENTS_IN_TOPICS,
    SINGLE_OVERRIDES,
    Ability,
)
from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.environment import Environment, Policy
from topicops.model.specs.topic_config import (
    MIN_ISR,
    THROTTLE_LISTS,
    ConfigValueError,
    canonical_overrides,
    configs_of,
    parse,
)
from topicops.steps.before_deletes import (
    CHECK_BY_HAND,
    HIDDEN_GROUPS,
    REPAIR,
    STOP_CLIENTS,
    delete_obstacles,
    failed_by_broker,
    recent_record,
    use_by_groups,
)
from topicops.steps.before_deletes import named as named_directories
from topicops.steps.reporting.facts_wording import why_command
from topicops.steps.specs.rules.names import folded


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEdits:
    """Sorted by name throughout."""

    before: Mapping[str, str | None]
    """Canonical value of each override that changes; None means not set."""
    after: Mapping[str, str | None]
    """Same keys; None removes the override."""
    unlisted: Mapping[str, str]
    """Live overrides that no spec names and that are kept; raw text as stored."""


def config_edits(wanted: Mapping[str, str | None], overrides: Mapping[str, str], policy: Policy) -> ConfigEdits:
    """Compare wanted with live overrides, in canonical form. The throttle lists are never changed."""
    live = canonical_overrides(overrides)
    unlisted = sorted(live.keys() - wanted.keys())
    removed = {name for name in unlisted if _is_removed(name, policy)}
    after = {**wanted, **dict.fromkeys(removed)}
    names = sorted(name for name in after if name not in THROTTLE_LISTS and after[name] != live.get(name))
    return ConfigEdits(
        before={name: live.get(name) for name in names},
        after={name: after[name] for name in names},
        unlisted={name: overrides[name] for name in unlisted if name not in removed},
    )


def _is_removed(name: str, policy: Policy) -> bool:
    if policy.unlisted_configs != "remove" or name in THROTTLE_LISTS:
        return False
    return policy.alterable_configs is None or name in policy.alterable_configs


ZNODE_LIMIT_BYTES = 800_000
"""ZooKeeper closes a connection that writes 1 MiB; a reassignment writes some rows twice."""
ZNODE_FRAME_BYTES = 120
"""Version, topic id and the empty maps of a topic znode."""

NO_TOPIC_ID = (
    "the topic has no topic id, so Kafka deletes it by name: if the topic is created again right before the request, "
    "the new topic is deleted"
)


class Finding(NamedTuple):
    """One reason why a topic is blocked."""

    code: Code
    reason: str
    way_out: str
    field: str = ""
    """Field of the spec that the change comes from; empty means the topic as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedMove:
    """Why and when replicas of a topic's live partitions are to move."""

    why: MoveReason
    findings: tuple[Finding, ...] = ()
    """Reasons why they cannot; empty: they can."""
    later: str = ""
    """Reason why they stay in this run, although other changes of the topic run; empty: they move now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One described topic, and everything that decides whether it may change."""

    desired: DesiredTopic
    topic: LiveTopic | None
    """Live topic; None means not live."""
    live: ClusterSnapshot
    environment: Environment
    now: datetime
    names_by_folded: Mapping[str, Sequence[str]]
    """Live topics by ``folded`` name."""
    activity: TopicActivity | None = None
    """Activity of a topic that the plan would delete; None means not asked."""
    is_unmanaged: bool = False
    """Whether no file describes the topic, and a drain moves it: ``desired`` is what is live."""
    move: WantedMove | None = None
    """Move of its replicas; None means that they stay where they are."""

    @property
    def is_managed(self) -> bool:
        return self.environment.spec.cluster.is_managed

    @property
    def grows(self) -> bool:
        return self.topic is not None and self.desired.partitions > self.topic.partitions

    @property
    def adds_partitions(self) -> bool:
        return self.topic is None or self.grows

    @property
    def places(self) -> bool:
        """Whether the plan chooses brokers for new partitions."""
        return self.adds_partitions and not self.is_managed

    @property
    def replication_factor(self) -> int:
        """Of new partitions: Kafka gives them as many replicas as partition 0 has."""
        if self.topic is None:
            return self.desired.replication_factor
        return len(self.topic.target_assignment.get(0, ()))

    @property
    def new_partitions(self) -> range:
        """Partitions that are to be created."""
        return range(self.topic.partitions if self.topic else 0, self.desired.partitions)

    @property
    def new_by_hand(self) -> set[int]:
        """Brokers to which the spec itself assigns replicas of new partitions."""
        rows, existing = self.desired.assignment or {}, self.topic.partitions if self.topic else 0
        return {broker for p, row in rows.items() if p >= existing for broker in row}

    @property
    def edits(self) -> ConfigEdits:
        overrides: Mapping[str, str] = self.topic.overrides if self.topic else {}
        return config_edits(self.desired.configs, overrides, self.environment.spec.policy)

    def default_of(self, config: str) -> Default:
        """Return what brokers use for a config that the topic does not set: all that may ever hold a replica of it."""
        rows = self.topic.assignment.values() if self.topic else ()
        return self.live.default_of(config, {broker for row in rows for broker in row})

    @property
    def sends_all_overrides(self) -> bool:
        """Whether a broker replaces all overrides of a topic at once; where that is not known, none does."""
        return self.without(SINGLE_OVERRIDES) is not None

    def without(self, ability: Ability) -> str | None:
        """Return a sentence about the brokers that do not offer this; None where none is known."""
        brokers = self.live.missing_requests.get(str(ability), ())
        return f"{_brokers(brokers)} no {ability}" if brokers else None

    @property
    def is_reassigning(self) -> bool:
        topic = self.topic
        return topic is not None and (topic.is_reassigning or topic.name in self.live.reassigning or self.is_accepted)

    @property
    def is_accepted(self) -> bool:
        """Whether a run has accepted moves of the topic, and they have not ended."""
        return self.desired.name in self.live.accepted_moves

    @property
    def moves_out_of_sight(self) -> bool:
        """Whether replicas move, and brokers are so old that the topic's znode has those of both sides."""
        releases = self.live.releases
        return self.is_reassigning and releases is not None and releases.oldest < REASSIGNMENTS_IN_TOPICS


Rule = Callable[[Situation], Finding | None]


def findings_of(situation: Situation, rules: Sequence[Rule]) -> tuple[Finding, ...]:
    return tuple(finding for rule in rules if (finding := rule(situation)))


def being_deleted(situation: Situation) -> Finding | None:
    """Return the only finding of such a topic: nothing else matters once it is deleted."""
    if situation.desired.name not in situation.live.deleting:
        return None
    reason = "the topic is marked for deletion but still exists"
    way_out = f"wait until the deletion has ended, then plan again; {_asked_why(situation)} says what holds it up"
    return Finding(Code.BEING_DELETED, reason, way_out)


def expired_pause(until: datetime) -> Finding:
    reason = f"the pause ended at {until:%Y-%m-%dT%H:%M:%SZ}"
    way_out = "take lifecycle out of the spec, or give the pause a later end"
    return Finding(Code.INCOMPLETE_LIFECYCLE, reason, way_out, "lifecycle.until")


def _creation_offered(situation: Situation) -> Finding | None:
    return _first_missing(situation, CREATE_TOPICS)


def _alteration_offered(situation: Situation) -> Finding | None:
    configs = (ALL_OVERRIDES,) if situation.edits.after and situation.sends_all_overrides else ()
    return _first_missing(situation, *((CREATE_PARTITIONS,) if situation.grows else ()), *configs)


def _deletion_offered(situation: Situation) -> Finding | None:
    has_id = situation.topic is not None and situation.topic.topic_id is not None
    is_asked = situation.environment.spec.policy.delete_active != "allow"
    questions = (END_OFFSETS, LIST_GROUPS, DESCRIBE_GROUPS, COMMITS) if is_asked else ()
    return _first_missing(situation, DELETE_TOPICS, *((DELETE_BY_ID,) if has_id else ()), *questions)


def _first_missing(situation: Situation, *needed: Ability) -> Finding | None:
    for ability in needed:
        if missing := situation.without(ability):
            way_out = f"ask who runs the brokers for it: Kafka's own brokers offer it since {ability.since}"
            return Finding(Code.REQUEST_NOT_OFFERED, f"{missing}: {ability.cost}", way_out)
    return None


def _protected(situation: Situation) -> Finding | None:
    pattern = situation.environment.protecting_pattern(situation.desired.name)
    if pattern is None:
        return None
    reason = f"the topic is protected by the pattern {pattern}"
    return Finding(Code.PROTECTED_TOPIC, reason, "remove its spec: another system owns this topic")


def unstable(situation: Situation) -> Finding | None:
    if situation.topic is None or not situation.topic.unstable:
        return None
    reason = "the topic kept changing while it was read, so it cannot be compared"
    return Finding(Code.KEPT_CHANGING, reason, "plan again when those changes have ended")


def _collision(situation: Situation) -> Finding | None:
    name = situation.desired.name
    if not {".", "_"} & set(name):  # Kafka looks for colliding names only then
        return None
    twins = sorted(set(situation.names_by_folded.get(folded(name), ())) - {name})
    if not twins:
        return None
    reason = f"the name collides with the live topic {twins[0]}: in metrics `.` and `_` are the same"
    return Finding(Code.COLLIDES_WITH_LIVE, reason, "choose another name")


def names_by_folded(topics: Iterable[str]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for topic in topics:
        found.setdefault(folded(topic), []).append(topic)
    return found


def _fewer_partitions(situation: Situation) -> Finding | None:
    desired, topic = situation.desired, situation.topic
    if topic is None or desired.partitions >= topic.partitions:
        return None
    reason = f"{desired.partitions} partitions wanted, {topic.partitions} live; Kafka cannot remove partitions"
    way_out = (
        f"set partitions: {topic.partitions}, in the spec or, where it is of other environments too, below "
        f"spec.overrides.{situation.environment.name}; or move the data to a new topic"
    )
    return Finding(Code.FEWER_PARTITIONS, reason, way_out, "partitions")


def _gaps(situation: Situation) -> Finding | None:
    topic = situation.topic
    if topic is None or not situation.grows or sorted(topic.assignment) == list(range(topic.partitions)):
        return None
    reason = f"partition ids have gaps: {topic.partitions} partitions, the highest id is {max(topic.assignment)}"
    way_out = "move the data to a new topic: Kafka would number new partitions of this hand-made one wrongly"
    return Finding(Code.MALFORMED_PARTITIONS, reason, way_out, "partitions")


def _dead_brokers_by_hand(situation: Situation) -> Finding | None:
    dead = sorted(situation.new_by_hand - situation.live.brokers.keys())
    if not dead:
        return None
    reason = f"the assignment names {brokers_text(dead)}, not live"
    return Finding(Code.ASSIGNED_BROKER_DOWN, reason, "start what is down, or name live brokers", "assignment")


def _failed_disks_by_hand(situation: Situation) -> Finding | None:
    failed = with_failed_disk(situation, situation.new_by_hand)
    if not failed:
        return None
    reason = f"the assignment names {failed}"
    return Finding(Code.FAILED_LOG_DIRECTORY, reason, f"{REPAIR}, or name other brokers", "assignment")


def with_failed_disk(situation: Situation, brokers: Iterable[int]) -> str:
    """Return those of the brokers with a failed log directory; empty: none of them has one."""
    failed = failed_by_broker(situation.live.log_directories or {})
    return ", ".join(
        f"broker {b}, whose log directory {named_directories(failed[b])} has failed"
        for b in sorted(set(brokers) & failed.keys())
    )


def closed_of(situation: Situation, brokers: Iterable[int]) -> str:
    """Return those of the brokers that are cordoned or draining; empty: none of them is."""
    closed = situation.live.closed
    return ", ".join(f"broker {b}, {closed[b]}" for b in sorted(set(brokers) & closed.keys()))


def _old_logs(situation: Situation) -> Finding | None:
    """Find logs of partitions that are to be created: brokers take their records for those of the new topic.

    A broker has them that was down when its replica was moved away, before the topic was deleted. Seen with ZooKeeper:
    2.4.1 gives the old records to consumers of the new topic, and 3.9.2 takes no record for the partition.
    """
    name, rows = situation.desired.name, situation.desired.assignment or {}
    for broker, told in sorted((situation.live.log_directories or {}).items()):
        both = (told.held, told.unused) if isinstance(told, LogDirectories) else ()
        kept = {partition for logs in both for partition in logs.get(name, ())}
        for partition in sorted(each for each in kept if each in situation.new_partitions):
            if broker in rows.get(partition, (broker,)):
                reason = f"broker {broker} has a log of partition {partition} of an earlier topic of this name"
                way_out = (
                    "plan again, because the topic may have changed meanwhile; if the plan still says so, stop the "
                    f"broker, remove the folder {name}-{partition} from its log directory, and start it"
                )
                return Finding(Code.OLD_LOG, reason, way_out, "partitions")
    return None


def _closed_by_hand(situation: Situation) -> Finding | None:
    if situation.is_managed and situation.new_by_hand:
        reason = "the assignment names brokers, and the brokers of a managed cluster place replicas themselves"
        return Finding(Code.NO_PLACEMENT, reason, "write partitions and replicationFactor instead", "assignment")
    closed = closed_of(situation, situation.new_by_hand)
    reason = f"the assignment names {closed}"
    return Finding(Code.NO_PLACEMENT, reason, "name other brokers", "assignment") if closed else None


def beside_failed(situation: Situation) -> str:
    """Return the brokers that get no new replicas although they are live."""
    live = situation.live.brokers
    out = [text for text in (with_failed_disk(situation, live), closed_of(situation, live)) if text]
    return f", beside {', '.join(out)}" if out else ""


def _reassigning(situation: Situation) -> Finding | None:
    if not situation.is_reassigning:
        return None
    reason = "a reassignment of this topic is running"
    way_out = f"wait until it has ended, then plan again; {_asked_why(situation)} says what it waits for"
    if situation.is_accepted:
        where = situation.environment.name
        shown, back = moves_command(where), moves_command(where, cancel=situation.desired.name)
        reason = "replicas of this topic move, or wait for it, by an approved change"
        way_out = f"wait until they have moved, then plan again; {shown} shows how far they are, {back} takes them back"
    return Finding(Code.REASSIGNMENT_RUNS, reason, way_out)


def _asked_why(situation: Situation) -> str:
    return why_command(situation.desired.name, situation.environment.name)


def moves_command(environment: str, *, cancel: str = "") -> str:
    """Return ``topicops moves --environment prod``, or with a topic the command that cancels its moves."""
    topic = f" --cancel={cancel}" if cancel.startswith("-") else f" --cancel {cancel}"
    return f"topicops moves --environment {environment}{topic if cancel else ''}"


def _reassigning_meanwhile(situation: Situation) -> Finding | None:
    """While replicas move, a topic does not grow, and no request may replace throttles. Old brokers hide the target."""
    replaces_throttles = situation.sends_all_overrides and bool(situation.edits.after)
    is_in_the_way = situation.grows or situation.moves_out_of_sight or replaces_throttles
    return _reassigning(situation) if is_in_the_way else None


def _too_few_brokers(situation: Situation) -> Finding | None:
    live, beside = len(situation.live.whole_racks), beside_failed(situation)
    if not situation.places or situation.replication_factor <= live:
        return None
    reason = f"replication factor {situation.replication_factor} needs as many live brokers; {live} are live{beside}"
    ways = {
        REPAIR: with_failed_disk(situation, situation.live.brokers),
        "let brokers have replicas again (cordoned.log.dirs, cluster.draining)": situation.live.closed,
        "start the missing brokers, then plan again": True,
    }
    way_out = ", or ".join(way for way, is_there in ways.items() if is_there)
    return Finding(Code.TOO_FEW_BROKERS, reason, way_out, "replicationFactor")


def _mixed_racks(situation: Situation) -> Finding | None:
    """The broker itself refuses such an expansion, even when the spec ignores racks."""
    ignores_racks = situation.topic is None and not situation.desired.rack_aware
    if not situation.places or ignores_racks:
        return None
    without = sorted(broker for broker, rack in situation.live.racks.items() if rack is None)
    if not without or len(without) == len(situation.live.brokers):
        return None
    reason = f"the others have a rack, but not {brokers_text(without)}"
    return Finding(Code.MIXED_RACKS, reason, "give every broker a broker.rack, or none")


def _znode_size(situation: Situation) -> Finding | None:
    if not situation.adds_partitions:
        return None
    size = estimated_znode_bytes(situation)
    if size <= ZNODE_LIMIT_BYTES:
        return None
    reason = f"the topic's znode would have about {size} bytes, {ZNODE_LIMIT_BYTES} are safe"
    return Finding(Code.LARGE_ZNODE, reason, "ask for fewer partitions", "partitions")


def estimated_znode_bytes(situation: Situation) -> int:
    """Size of the topic's znode after the change; each new replica counts as the longest broker id."""
    existing: Assignment = situation.topic.assignment if situation.topic else {}
    kept = sum(len(f'"{p}":[{",".join(map(str, row))}],') for p, row in existing.items())
    wanted, id_digits = situation.desired.partitions, max((len(str(b)) for b in situation.live.brokers), default=1)
    new_row = len('"":[],') + situation.replication_factor * (id_digits + 1) - 1
    new_ids = _digits_up_to(wanted) - _digits_up_to(len(existing))
    return ZNODE_FRAME_BYTES + kept + new_ids + (wanted - len(existing)) * new_row


def _digits_up_to(number: int) -> int:
    """Return how many digits the numbers from 0 to ``number - 1`` have in all, without a loop over them."""
    digits, bound = number, 10
    while bound < number:
        digits += number - bound
        bound *= 10
    return digits


def _min_isr(situation: Situation) -> Finding | None:
    """A partition whose ISR is smaller than the new minimum refuses producers at once."""
    topic, wanted = situation.topic, raised_min_isr(situation)
    if topic is None or topic.states is None or wanted is None:
        return None
    isr_sizes = {p: len(state.isr) for p, state in topic.states.items()}
    short = sorted(p for p in topic.assignment if isr_sizes.get(p, 0) < wanted)
    if not short:
        return None
    reason = f"{MIN_ISR} {wanted} is above the ISR of partition{'s' if short[1:] else ''} {_listed(short[:10])}"
    way_out = "wait until the ISR is full again, then plan again"
    if any(len(topic.assignment[p]) < wanted <= situation.desired.replication_factor for p in short):
        way_out = f"raise replicationFactor alone, and {MIN_ISR} once the new replicas are in sync"
    return Finding(Code.MIN_ISR_ABOVE_ISR, reason, way_out, f"configs.{MIN_ISR}")


def raised_min_isr(situation: Situation) -> int | None:
    """Return the new minimum if it rises on a broker, or may: then the partitions' ISRs must be checked. Else None.

    A default that is not known may be as large as a partition has replicas: brokers take a larger one as that.
    """
    edits, topic = situation.edits, situation.topic
    if MIN_ISR not in edits.after or topic is None:
        return None
    ends = (edits.before[MIN_ISR], edits.after[MIN_ISR])
    largest = max((len(row) for row in topic.assignment.values()), default=1)
    pairs = ([_whole_number(end or default) for end in ends] for default in possible(situation.default_of(MIN_ISR)))
    known = ((before, largest if after is None else after) for before, after in pairs)
    return max((after for before, after in known if before is None or after > before), default=None)


def min_isr_values(situation: Situation, own: str | None) -> set[int | None]:
    """Return what live brokers may take for ``min.insync.replicas`` of a topic with this override; None: not known."""
    return {_whole_number(own or default) for default in possible(situation.live.default_of(MIN_ISR))}


def _whole_number(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        value = parse(MIN_ISR, text)
    except ConfigValueError:
        return None
    return value if isinstance(value, int) else None


def _not_before(situation: Situation) -> Finding | None:
    not_before = situation.desired.not_before
    if not_before is None or not_before <= situation.now:
        return None
    reason = f"the tombstone holds until {not_before:%Y-%m-%dT%H:%M:%SZ}"
    return Finding(Code.NOT_BEFORE, reason, "plan again after that time", "lifecycle.notBefore")


def _foreign_topic_id(situation: Situation) -> Finding | None:
    named, topic = situation.desired.topic_id, situation.topic
    if named is None or topic is None or named == topic.topic_id:
        return None
    reason = f"the tombstone is for topic id {named}, the live topic has {topic.topic_id or 'none'}"
    way_out = "the topic was created again; to delete this one too, name its id"
    return Finding(Code.OTHER_TOPIC_ID, reason, way_out, "lifecycle.topicIds")


def _dead_replica(situation: Situation) -> Finding | None:
    topic = situation.topic
    if topic is None:
        return None
    dead = sorted({b for row in topic.target_assignment.values() for b in row} - set(situation.live.brokers))
    if not dead:
        return None
    reason = f"its replicas on {brokers_text(dead)} cannot be deleted: not live"
    return Finding(Code.BROKER_DOWN, reason, "start what is down, or move the replicas away, then plan again")


def _failed_disk(situation: Situation) -> Finding | None:
    """What is not known is a note of the change, and apply refuses it."""
    topic = situation.topic
    if topic is None:
        return None
    found = list(delete_obstacles(topic.name, topic.assignment, situation.live.log_directories or {}))
    if not found:
        return None
    ways = dict.fromkeys(way for _, way in found)
    reason = "; ".join(reason for reason, _ in found)
    return Finding(Code.FAILED_LOG_DIRECTORY, reason, f"{'; '.join(ways)}, then plan again")


def _no_topic_id(situation: Situation) -> Finding | None:
    topic, environment = situation.topic, situation.environment
    if topic is None or topic.topic_id is not None or environment.spec.delete_by_name == "allow":
        return None
    reason = f"{NO_TOPIC_ID} ({environment.place_of('policy.deleteByName')}, refuses that)"
    return Finding(Code.DELETED_BY_NAME, reason, f"{_way_to_ids(situation)}, or set policy.deleteByName: allow")


def _way_to_ids(situation: Situation) -> str:
    if missing := situation.without(DELETE_BY_ID):
        return f"run brokers of Kafka {DELETE_BY_ID.since} or later ({missing})"
    return f"raise inter.broker.protocol.version to {DELETE_BY_ID.since} or later"


def _refused_by_brokers(situation: Situation) -> Finding | None:
    """A config that brokers of another release than the files are judged by do not have, or do not take so."""
    releases, edits = situation.live.releases, situation.edits
    if releases is None:
        return None
    sent: dict[str, str | None] = {**edits.unlisted} if situation.sends_all_overrides and edits.after else {}
    for name, value in {**sent, **edits.after}.items():
        for release in releases:
            if value is not None and (problem := config_problem(name, value, release)):
                reason = f"the brokers run Kafka {releases} and would refuse {name}={value}: {problem}"
                way_out = "take it out, or upgrade the brokers"
                return Finding(
                    Code.INVALID_CONFIG if name in configs_of(release) else Code.UNUSABLE_CONFIG,
                    reason,
                    way_out,
                    f"configs.{name}",
                )
    return None


def _recent_record(situation: Situation) -> Finding | None:
    policy = situation.environment.spec
    if situation.activity is None or policy.policy.delete_active == "allow":
        return None
    missing = situation.without(LAST_RECORDS)
    if policy.rests_for and situation.activity.last_record_ms is None and missing:
        reason = f"it is not known when its last record was written: {missing} (Kafka {LAST_RECORDS.since})"
        way_out = "set policy.restsFor: 0s, which compares the end offsets alone, or deleteActive: allow"
        return Finding(Code.USE_NOT_KNOWN, reason, way_out)
    recent = recent_record(situation.activity, policy.rests_for, situation.now)
    return Finding(code=Code.RECENT_TRAFFIC, reason=recent, way_out=STOP_CLIENTS) if recent else None


def _used_by_groups(situation: Situation) -> Finding | None:
    activity = situation.activity
    if activity is None or situation.environment.spec.policy.delete_active == "allow":
        return None
    if isinstance(activity, ActivityOfHiddenGroups):
        return Finding(Code.USE_NOT_KNOWN, HIDDEN_GROUPS, CHECK_BY_HAND)
    used = use_by_groups(activity)
    return Finding(code=Code.ACTIVE_GROUP, reason=used[0], way_out=used[1]) if used else None


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]} offers" if len(ids) == 1 else f"brokers {_listed([*ids])} offer"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


CREATE_RULES: tuple[Rule, ...] = (
    _protected,
    _creation_offered,
    _refused_by_brokers,
    _collision,
    _too_few_brokers,
    _mixed_racks,
    _dead_brokers_by_hand,
    _failed_disks_by_hand,
    _closed_by_hand,
    _old_logs,
    _znode_size,
)
ALTER_RULES: tuple[Rule, ...] = (
    _protected,
    _alteration_offered,
    unstable,
    _fewer_partitions,
    _gaps,
    _reassigning_meanwhile,
    _too_few_brokers,
    _mixed_racks,
    _dead_brokers_by_hand,
    _failed_disks_by_hand,
    _closed_by_hand,
    _old_logs,
    _znode_size,
    _min_isr,
    _refused_by_brokers,
)
DELETE_RULES: tuple[Rule, ...] = (
    _protected,
    unstable,
    _foreign_topic_id,
    _no_topic_id,
    _deletion_offered,
    _not_before,
    _recent_record,
    _used_by_groups,
    _dead_replica,
    _failed_disk,
    _reassigning,
)

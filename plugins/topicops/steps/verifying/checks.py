"""The rules of verify: each takes one observation of a topic and yields what is wrong with the topic.

Ids and meaning: docs/reference/checks.md. A new check is one function and one line in ``RULES``. Rules about the
brokers' answers are in ``broker_checks``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from topicops.model.cluster.broker_defaults import unoffered_text
from topicops.model.cluster.health import PartitionHealth
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.codes import Code
from topicops.model.json_types import assignment_digest
from topicops.model.ports import Unoffered
from topicops.model.printable import or_not_set
from topicops.model.runs.results import Check, Verdict
from topicops.model.specs.topic_config import (
    MIN_ISR,
    canonical_overrides,
    min_insync_replicas,
    needed_in_sync,
    own_min_insync_replicas,
)
from topicops.steps.verifying import broker_checks
from topicops.steps.verifying.observation import Expectation, Finding, Observation, Rule, broker_names, partition_names

FEW_ELECTIONS = 3
"""Broker restarts alone cause as many for a new topic; more mean that its leaders are not stable."""


def findings(observation: Observation) -> tuple[Finding, ...]:
    """Return all findings of the topic, in the order of the rules."""
    if observation.expected.absent:
        return tuple(finding for rule in ABSENCE_RULES.values() for finding in rule(observation))
    if observation.live is None:
        return tuple(finding for rule in (missing_topic, *CLUSTER_RULES.values()) for finding in rule(observation))
    found = tuple(finding for rule in RULES.values() for finding in rule(observation))
    if observation.expected.moving is None:
        return found
    # Each broker learns of each partition's step for itself, and the next step may come before the last has learned.
    return tuple(replace(f, verdict=Verdict.MOVING) if _is_of_move(f) else f for f in found)


def _is_of_move(finding: Finding) -> bool:
    return finding.verdict is Verdict.CONVERGING and finding.check in (Code.V14, Code.V16)


def checked_ids(expected: Expectation, parts: Collection[str]) -> tuple[Code, ...]:
    """Return the ids of the rules that can find something for such a topic after these parts were read."""
    rules = ABSENCE_RULES if expected.absent else RULES
    return tuple(dict.fromkeys(check for check, part in rules if part in parts))


def checks_of(expected: Expectation, found: Sequence[Finding], parts: Collection[str]) -> Iterator[Check]:
    """Yield a check for each finding, and a healthy one for each applied rule without findings; sorted by id."""
    topic, broken = expected.topic, {finding.check for finding in found}
    unbroken = (check for check in checked_ids(expected, parts) if check not in broken)
    healthy = [Check(id=check, topic=topic, verdict=Verdict.HEALTHY) for check in unbroken]
    wrong = [
        Check(id=f.check, topic=topic, verdict=f.verdict, message=f.message, code=f.code, brokers=f.brokers)
        for f in found
    ]
    yield from sorted([*healthy, *wrong], key=lambda check: check.id)


def missing_topic(observation: Observation) -> Iterator[Finding]:
    """V02: the topic exists; one that the run creates may still appear."""
    is_final = observation.expected.identity is not None and _never_returns(observation)
    yield Finding(Code.V02, Verdict.FAILED, "topic is not there", code=Code.TOPIC_MISSING, is_final=is_final)


def structure(observation: Observation) -> Iterator[Finding]:
    """V02: partition ids 0 to n-1, rows of distinct brokers and equal length, and as planned."""
    live = observation.present
    # Until old brokers have moved a partition, its znode has the replicas of both sides.
    verdict = Verdict.CONVERGING if observation.traces.is_in_reassignment else Verdict.FAILED
    for message, subject, code in _malformed(live):
        if code is Code.MIXED_REPLICATION_FACTOR and observation.expected.moving:
            continue  # partitions get their new number of replicas one after the other
        yield Finding(Code.V02, verdict, message, code, subjects=frozenset({subject}))
    for message in _unplanned(observation.expected, live):
        yield Finding(Code.V02, Verdict.FAILED, message, Code.PARTITIONS_DIFFER)


def identity(observation: Observation) -> Iterator[Finding]:
    """V03: still the topic of the plan."""
    live, planned = observation.present, observation.expected.identity
    if planned is not None and live.identity_after(planned) != planned:
        message = f"topic id: planned {planned}, live {live.identity}: it was deleted and created again"
        is_final = _never_returns(observation)
        yield Finding(Code.V03, Verdict.FAILED, message, Code.CREATED_AGAIN, is_final=is_final)


def reassignment(observation: Observation) -> Iterator[Finding]:
    """V04: no replica is being added or removed; moves that a plan of topicops asked for are no problem until stuck."""
    live, moving = observation.present, observation.expected.moving
    if moving:
        verdict = Verdict.DEGRADED if moving.is_stuck else Verdict.MOVING
        yield Finding(Code.V04, verdict, moving.sentence, Code.REASSIGNMENT_RUNS, is_final=True)
    ours = moving.partitions if moving else ()
    for p in sorted(p for p in live.assignment if p not in ours and (live.adding.get(p) or live.removing.get(p))):
        message = f"partition {p} is being reassigned: replicas {list(live.assignment[p])}"
        yield _of_partition(Code.V04, Verdict.CONVERGING, p, message, Code.REASSIGNMENT_RUNS)
    if observation.traces.is_in_reassignment and not live.is_reassigning and not moving:
        message = "/admin/reassign_partitions names it, so its replicas are being moved"
        yield Finding(Code.V04, Verdict.CONVERGING, message, Code.REASSIGNMENT_RUNS)
    if observation.traces.unread_moves:
        yield Finding(Code.V04, Verdict.NOT_CHECKED, f"reassignments ({observation.traces.unread_moves})")


def deletion_marker(observation: Observation) -> Iterator[Finding]:
    """V05: the topic has no deletion marker."""
    if observation.traces.is_deleting:
        message = "marked for deletion" + _waiting_for(observation)
        brokers = _waited_for(observation)
        yield Finding(Code.V05, Verdict.FAILED, message, Code.BEING_DELETED, brokers=brokers)


def state(observation: Observation) -> Iterator[Finding]:
    """V06: every partition has a state."""
    live = observation.present
    for p in sorted(live.assignment.keys() - observation.states.keys()):
        replicas = live.assignment[p]
        hope = any(broker in observation.brokers for broker in replicas)
        verdict = Verdict.CONVERGING if hope else Verdict.FAILED
        message = f"partition {p} has no state yet: replicas {list(replicas)}{_lost(observation, p, replicas)}"
        brokers = _lost_brokers(observation, p, replicas)
        yield _of_partition(Code.V06, verdict, p, message, Code.NO_STATE, brokers)


def leader(observation: Observation) -> Iterator[Finding]:
    """V07: the leader is a live replica in the ISR."""
    for p, found in observation.led_partitions():
        replicas, health = observation.present.assignment[p], observation.health(p)
        if reason := _leader_problem(health, replicas):
            message = f"partition {p} {reason}{_lost(observation, p, replicas)}"
            code = Code.NO_LEADER if health.is_offline else Code.STRANGE_STATE
            brokers = _lost_brokers(observation, p, [*replicas, found.leader] if found.leader >= 0 else replicas)
            yield _of_partition(Code.V07, Verdict.FAILED, p, message, code, brokers)


def isr(observation: Observation) -> Iterator[Finding]:
    """V08: the ISR is all replicas, and all of them live."""
    for p, _ in observation.led_partitions():
        health = observation.health(p)
        away = {*health.missing, *health.dead_replicas}
        missing = [broker for broker in health.replicas if broker in away]
        if missing:
            lost = _lost(observation, p, missing)
            yield Finding(
                Code.V08,
                Verdict.DEGRADED if lost else Verdict.CONVERGING,
                f"partition {p} lacks {broker_names(missing)} in its ISR{lost}",
                Code.INCOMPLETE_ISR,
                subjects=frozenset(f"partition {p} on broker {broker}" for broker in missing),
                brokers=_in_order(missing, observation.brokers_with_failed_disks([p])),
            )


def min_isr(observation: Observation) -> Iterator[Finding]:
    """V09: the ISR is large enough for producers with ``acks=all``."""
    defaults = (observation.broker_defaults or {}).items()
    unread = {broker: given for broker, given in defaults if isinstance(given, Unoffered)}
    if unread and own_min_insync_replicas(observation.present.overrides) is None:
        yield Finding(Code.V09, Verdict.NOT_CHECKED, f"the brokers' default of {MIN_ISR} ({unoffered_text(unread)})")
    for p, found in observation.led_partitions():
        row = observation.present.assignment[p]
        deciding = (found.leader,) if found.leader in observation.brokers else row
        least = min_insync_replicas(observation.present.overrides, observation.broker_defaults, deciding)
        health = observation.health(p, min_isr=needed_in_sync(least, len(row), observation.releases))
        if health.is_under_min_isr:
            size = f"{len(health.isr)} of {health.min_isr}"
            message = f"partition {p} has {size} in-sync replicas that {MIN_ISR} asks for"
            brokers = _lost_brokers(observation, p, row)
            yield _of_partition(Code.V09, Verdict.DEGRADED, p, message, Code.BELOW_MIN_ISR, brokers)


def preferred_leader(observation: Observation) -> Iterator[Finding]:
    """V10: each leader is the first replica; only a remark, because the controller moves it back by itself."""
    moved = [p for p, _ in observation.led_partitions() if observation.health(p).is_led_by_another]
    if moved:
        who = "its" if len(moved) == 1 else "their"
        message = f"{partition_names(moved)}: not led by {who} first replica"
        yield Finding(Code.V10, Verdict.HEALTHY, message)


def leader_epochs(observation: Observation) -> Iterator[Finding]:
    """V11: leader epochs do not go back, and a new topic has had few elections."""
    for p, found in observation.led_partitions():
        earlier = observation.states_before.get(p, found).leader_epoch
        if earlier is not None and found.leader_epoch is not None and found.leader_epoch < earlier:
            message = f"partition {p} went back from leader epoch {earlier} to {found.leader_epoch}: written by hand?"
            yield Finding(Code.V11, Verdict.FAILED, message, Code.STRANGE_STATE, is_final=True)
    churned = {
        p: found.leader_epoch or 0
        for p, found in observation.led_partitions()
        if (found.leader_epoch or 0) > FEW_ELECTIONS
    }
    if observation.expected.is_new and churned:
        message = f"{partition_names(churned)}: up to {max(churned.values())} elections since the topic was created"
        yield Finding(Code.V11, Verdict.HEALTHY, message)


def controller_epochs(observation: Observation) -> Iterator[Finding]:
    """V12: no state has a later controller epoch than ZooKeeper."""
    for p, found in observation.led_partitions():
        # Brokers do not say under which controller epoch a state was written.
        if (found.controller_epoch or 0) > (observation.controller_epoch or 0):
            message = (
                f"partition {p} was written under controller epoch {found.controller_epoch}, "
                f"the current one is {observation.controller_epoch}"
            )
            yield Finding(Code.V12, Verdict.CONVERGING, message, Code.CONTROLLER_MOVED)


def controller(observation: Observation) -> Iterator[Finding]:
    """V13: a controller is elected."""
    if not observation.has_controller:
        yield Finding(Code.V13, Verdict.CONVERGING, "no controller is elected", Code.NO_CONTROLLER)


def overrides(observation: Observation) -> Iterator[Finding]:
    """V15: overrides are as planned; values are compared in the brokers' canonical form."""
    found, wanted = canonical_overrides(observation.present.overrides), observation.expected.configs
    for name in sorted(wanted.keys() | found.keys() if observation.expected.configs_are_all else wanted):
        if wanted.get(name) != found.get(name):
            message = f"{name}: planned {or_not_set(wanted.get(name))}, live {or_not_set(found.get(name))}"
            yield Finding(Code.V15, Verdict.FAILED, message, Code.CONFIG_DIFFERS)


def absence(observation: Observation) -> Iterator[Finding]:
    """V17: topic, config and marker znodes are gone."""
    live, planned = observation.live, observation.expected.identity
    if live is not None and planned is not None and live.identity_after(planned) != planned:
        message = f"it is back with topic id {live.identity}: something creates topics outside git"
        yield Finding(Code.V17, Verdict.FAILED, message, Code.RETIRED_IS_BACK, is_final=True)
    elif not observation.traces.is_gone:
        message = f"left: {', '.join(_left(observation))}{_waiting_for(observation)}"
        code = Code.BEING_DELETED if observation.traces.is_deleting else Code.NOT_DELETED
        verdict = Verdict.CONVERGING if observation.traces.is_deleting or live is None else Verdict.FAILED
        yield Finding(Code.V17, verdict, message, code, brokers=_waited_for(observation))


CLUSTER_RULES: Mapping[tuple[Code, str], Rule] = {
    (Code.V01, "views"): broker_checks.cluster_id,
    (Code.V13, "source"): controller,
}
RULES: Mapping[tuple[Code, str], Rule] = {
    (Code.V01, "views"): broker_checks.cluster_id,
    (Code.V02, "source"): structure,
    (Code.V03, "source"): identity,
    (Code.V03, "views"): broker_checks.topic_ids,
    (Code.V04, "source"): reassignment,
    (Code.V05, "source"): deletion_marker,
    (Code.V06, "source"): state,
    (Code.V07, "source"): leader,
    (Code.V08, "source"): isr,
    (Code.V09, "source"): min_isr,
    (Code.V10, "source"): preferred_leader,
    (Code.V11, "source"): leader_epochs,
    (Code.V12, "source"): controller_epochs,
    (Code.V13, "source"): controller,
    (Code.V14, "views"): broker_checks.metadata,
    (Code.V15, "source"): overrides,
    (Code.V15, "broker configs"): broker_checks.overrides,
    (Code.V16, "logs"): broker_checks.log_directories,
    (Code.V16, "offsets"): broker_checks.end_offsets,
}
"""Rules by id and by the part of an observation that they need, for a topic that must exist."""
ABSENCE_RULES: Mapping[tuple[Code, str], Rule] = {
    **CLUSTER_RULES,
    (Code.V17, "source"): absence,
    (Code.V17, "views"): broker_checks.absence,
    (Code.V17, "logs"): broker_checks.leftover_logs,
}
"""Rules for a topic that must not exist."""


def _never_returns(observation: Observation) -> bool:
    """Return whether a topic that is missing from the source is gone for good; a broker's metadata may only be late."""
    return observation.source == "zookeeper"


def _of_partition(
    check: Code, verdict: Verdict, partition: int, message: str, code: Code, brokers: tuple[int, ...] = ()
) -> Finding:
    return Finding(check, verdict, message, code, subjects=frozenset({f"partition {partition}"}), brokers=brokers)


def _malformed(live: LiveTopic) -> Iterator[tuple[str, str, Code]]:
    """Message, a subject that stays the same when the message changes, and the cause."""
    if not live.assignment:
        yield "it has no partitions", "no partitions", Code.MALFORMED_PARTITIONS
    if sorted(live.assignment) != list(range(live.partitions)):
        message = f"partition ids are not 0 to {live.partitions - 1}: {sorted(live.assignment)}"
        yield message, "gaps", Code.MALFORMED_PARTITIONS
    if len(live.replication_factors) > 1:
        factors = sorted(live.replication_factors)
        message = f"partitions have different replication factors: {factors}"
        yield message, "replication factors", Code.MIXED_REPLICATION_FACTOR
    for p, replicas in sorted(live.assignment.items()):
        if not replicas or len(set(replicas)) != len(replicas):
            yield f"partition {p} has replicas {list(replicas)}", f"partition {p}", Code.MALFORMED_PARTITIONS


def _unplanned(expected: Expectation, live: LiveTopic) -> Iterator[str]:
    if expected.partitions is not None and live.partitions != expected.partitions:
        yield f"partitions: planned {expected.partitions}, live {live.partitions}"
    wanted, factors = expected.replication_factor, sorted(live.replication_factors)
    if not expected.assignment and wanted is not None and factors != [wanted]:
        yield f"replication factor: planned {wanted}, live {', '.join(map(str, factors))}"
    for p, replicas in sorted(expected.assignment.items()):
        if p in live.assignment and live.assignment[p] != tuple(replicas):
            yield f"replicas of partition {p}: planned {list(replicas)}, live {list(live.assignment[p])}"
    earlier = {p: row for p, row in live.target_assignment.items() if p < expected.earlier_partitions}
    if expected.earlier_digest is not None and assignment_digest(earlier) != expected.earlier_digest:
        yield f"replicas of the first {expected.earlier_partitions} partitions are not as before"


def _leader_problem(health: PartitionHealth, replicas: tuple[int, ...]) -> str | None:
    if health.leader < 0:
        return "has no leader"
    if health.is_offline:
        return f"is led by broker {health.leader}, which is not live"
    if health.is_led_from_outside_isr:
        return f"is led by broker {health.leader}, which is not in its ISR {list(health.isr)}"
    return None if health.leader in replicas else f"is led by broker {health.leader}, which holds no replica of it"


def _left(observation: Observation) -> Iterator[str]:
    traces = observation.traces
    if traces.live is not None:
        yield "topic znode" if observation.source == "zookeeper" else "the topic"
    if traces.has_config_znode:
        yield "config znode"
    if traces.is_deleting:
        yield "deletion marker"
    if traces.is_in_reassignment:
        yield "its name in /admin/reassign_partitions"


def _waiting_for(observation: Observation) -> str:
    missing = _dead(observation, observation.holders)
    waits = f"; waits for {broker_names(missing)}" if missing else ""
    return f"{waits}{observation.failed_disks()}"


def _waited_for(observation: Observation) -> tuple[int, ...]:
    return _in_order(_dead(observation, observation.holders), observation.brokers_with_failed_disks())


def _lost(observation: Observation, partition: int, replicas: Iterable[int]) -> str:
    """Return the brokers and disks that keep these replicas of a partition away; empty: none that is known."""
    dead = _dead(observation, replicas)
    return (f"; {broker_names(dead)} not live" if dead else "") + observation.failed_disks([partition])


def _lost_brokers(observation: Observation, partition: int, replicas: Iterable[int]) -> tuple[int, ...]:
    """Return the same brokers."""
    return _in_order(_dead(observation, replicas), observation.brokers_with_failed_disks([partition]))


def _dead(observation: Observation, replicas: Iterable[int]) -> list[int]:
    return sorted(broker for broker in replicas if broker not in observation.brokers)


def _in_order(*brokers: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(chain.from_iterable(brokers))))

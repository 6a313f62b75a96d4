"""The rules of verify: each looks at one topic once and yields what is wrong with it.

Ids and meaning: docs/reference/checks.md. A new check is one function and one line in ``RULES``. What the brokers
say is in ``broker_checks``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from topicops.model.canonical import assignment_digest
from topicops.model.cluster.snapshot import LiveTopic, PartitionState
from topicops.model.runs.results import Check, Verdict
from topicops.model.specs.topic_config import MIN_ISR, canonical_overrides, min_insync_replicas
from topicops.steps.verifying import broker_checks
from topicops.steps.verifying.observation import Expectation, Observation, Problem, Rule, broker_names, partition_names

FEW_ELECTIONS = 3
"""A new topic's leaders change as often when brokers restart under it; more often means that they do not settle."""


def problems(observation: Observation) -> tuple[Problem, ...]:
    """Every problem of the topic, in the order of the rules."""
    if observation.expected.absent:
        return tuple(problem for rule in ABSENCE_RULES.values() for problem in rule(observation))
    if observation.live is None:
        return tuple(problem for rule in (gone, *CLUSTER_RULES.values()) for problem in rule(observation))
    return tuple(problem for rule in RULES.values() for problem in rule(observation))


def checked_ids(expected: Expectation, sides: Collection[str]) -> tuple[str, ...]:
    """List the rules that could find something for such a topic where these sides were looked at."""
    rules = ABSENCE_RULES if expected.absent else RULES
    return tuple(dict.fromkeys(check for check, side in rules if side in sides))


def as_check(topic: str, problem: Problem) -> Check:
    return Check(id=problem.check, topic=topic, verdict=problem.verdict, message=problem.message, code=problem.code)


def gone(observation: Observation) -> Iterator[Problem]:
    """V02: the topic is there; one that the run makes may still come."""
    is_final = observation.expected.identity is not None and _never_returns(observation)
    yield Problem(check="V02", verdict=Verdict.FAILED, message="topic is not there", code="TOP604", is_final=is_final)


def shape(observation: Observation) -> Iterator[Problem]:
    """V02: partition ids 0 to n-1, rows of distinct brokers and equal length, and as planned."""
    live = observation.present
    for message, subject in _malformed(live):
        subjects = frozenset({subject})
        yield Problem(check="V02", verdict=Verdict.FAILED, message=message, code="TOP604", subjects=subjects)
    for message in _unplanned(observation.expected, live):
        yield Problem(check="V02", verdict=Verdict.FAILED, message=message, code="TOP604")


def identity(observation: Observation) -> Iterator[Problem]:
    """V03: still the topic of the plan."""
    live, planned = observation.present, observation.expected.identity
    if planned is not None and live.identity != planned:
        message = f"topic id: planned {planned}, live {live.identity}: it was deleted and made again"
        is_final = _never_returns(observation)
        yield Problem(check="V03", verdict=Verdict.FAILED, message=message, code="TOP606", is_final=is_final)


def reassignment(observation: Observation) -> Iterator[Problem]:
    """V04: no replicas being added or removed."""
    live = observation.present
    for p in sorted(p for p in live.assignment if live.adding.get(p) or live.removing.get(p)):
        message = f"partition {p} is being reassigned: replicas {list(live.assignment[p])}"
        yield _of_partition("V04", Verdict.CONVERGING, p, message, "TOP419")


def deletion_marker(observation: Observation) -> Iterator[Problem]:
    """V05: nobody asked for its deletion."""
    if observation.traces.is_deleting:
        message = "marked for deletion" + _waiting_for(observation)
        yield Problem(check="V05", verdict=Verdict.FAILED, message=message, code="TOP418")


def state(observation: Observation) -> Iterator[Problem]:
    """V06: every partition has a state."""
    live = observation.present
    for p in sorted(live.assignment.keys() - observation.states.keys()):
        replicas = live.assignment[p]
        hope = any(broker in observation.brokers for broker in replicas)
        verdict = Verdict.CONVERGING if hope else Verdict.FAILED
        message = f"partition {p} has no state yet: replicas {list(replicas)}{_dead(replicas, observation.brokers)}"
        yield _of_partition("V06", verdict, p, message, "TOP601")


def leader(observation: Observation) -> Iterator[Problem]:
    """V07: the leader is a live replica in the ISR."""
    for p, found in observation.led():
        replicas = observation.present.assignment[p]
        if reason := _leader_problem(found, replicas, observation.brokers):
            message = f"partition {p} {reason}{_dead(replicas, observation.brokers)}"
            yield _of_partition("V07", Verdict.FAILED, p, message, "TOP601")


def isr(observation: Observation) -> Iterator[Problem]:
    """V08: the ISR is all replicas, and all of them live."""
    for p, found in observation.led():
        replicas = observation.present.assignment[p]
        missing = [broker for broker in replicas if broker not in found.isr or broker not in observation.brokers]
        if missing:
            dead = any(broker not in observation.brokers for broker in missing)
            yield Problem(
                check="V08",
                verdict=Verdict.DEGRADED if dead else Verdict.CONVERGING,
                message=f"partition {p} lacks {broker_names(missing)} in its ISR{_dead(missing, observation.brokers)}",
                code="TOP602",
                subjects=frozenset(f"partition {p} on broker {broker}" for broker in missing),
            )


def min_isr(observation: Observation) -> Iterator[Problem]:
    """V09: the ISR suffices for producers with ``acks=all``."""
    least = min_insync_replicas(observation.present.overrides, observation.broker_defaults)
    for p, found in observation.led():
        # As kafka.cluster.Partition#effectiveMinIsr of 3.9 does: never more than there are replicas.
        needed = min(least, len(observation.present.assignment[p]))
        size = sum(broker in observation.brokers for broker in found.isr)
        if size < needed:
            message = f"partition {p} has {size} of {needed} in-sync replicas that {MIN_ISR} asks for"
            yield _of_partition("V09", Verdict.DEGRADED, p, message, "TOP602")


def preferred_leader(observation: Observation) -> Iterator[Problem]:
    """V10: each leader is the first replica; a remark, since brokers move it back when it suits them."""
    moved = [p for p, found in observation.led() if observation.present.assignment[p][:1] not in ((), (found.leader,))]
    if moved:
        who = "its" if len(moved) == 1 else "their"
        message = f"{partition_names(moved)}: not led by {who} first replica"
        yield Problem(check="V10", verdict=Verdict.HEALTHY, message=message)


def leader_epochs(observation: Observation) -> Iterator[Problem]:
    """V11: leader epochs do not go back, and a new topic has few of them behind it."""
    for p, found in observation.led():
        earlier = observation.before.get(p, found).leader_epoch
        if earlier is not None and found.leader_epoch is not None and found.leader_epoch < earlier:
            message = f"partition {p} went back from leader epoch {earlier} to {found.leader_epoch}: written by hand?"
            yield Problem(check="V11", verdict=Verdict.FAILED, message=message, code="TOP605", is_final=True)
    churned = {
        p: found.leader_epoch or 0 for p, found in observation.led() if (found.leader_epoch or 0) > FEW_ELECTIONS
    }
    if observation.expected.is_new and churned:
        message = f"{partition_names(churned)}: up to {max(churned.values())} elections since the topic was made"
        yield Problem(check="V11", verdict=Verdict.HEALTHY, message=message)


def controller_epochs(observation: Observation) -> Iterator[Problem]:
    """V12: no state was written under a later controller than ZooKeeper knows."""
    for p, found in observation.led():
        # Brokers do not tell under which controller a state was written.
        if (found.controller_epoch or 0) > (observation.controller_epoch or 0):
            message = (
                f"partition {p} was written under controller epoch {found.controller_epoch}, "
                f"the current one is {observation.controller_epoch}"
            )
            yield Problem(check="V12", verdict=Verdict.CONVERGING, message=message, code="TOP508")


def controller(observation: Observation) -> Iterator[Problem]:
    """V13: there is a controller to finish what was begun."""
    if not observation.has_controller:
        yield Problem(check="V13", verdict=Verdict.CONVERGING, message="no controller is elected", code="TOP421")


def overrides(observation: Observation) -> Iterator[Problem]:
    """V15: overrides as planned, compared as the brokers read them."""
    found, wanted = canonical_overrides(observation.present.overrides), observation.expected.configs
    for name in sorted(wanted.keys() | found.keys() if observation.expected.configs_are_all else wanted):
        if wanted.get(name) != found.get(name):
            message = f"{name}: planned {_shown(wanted.get(name))}, live {_shown(found.get(name))}"
            yield Problem(check="V15", verdict=Verdict.FAILED, message=message, code="TOP603")


def absence(observation: Observation) -> Iterator[Problem]:
    """V17: topic, config and marker znodes are gone."""
    live = observation.live
    if live is not None and live.identity != (observation.expected.identity or live.identity):
        message = f"it is back with topic id {live.identity}: something makes topics outside git"
        yield Problem(check="V17", verdict=Verdict.FAILED, message=message, code="TOP607", is_final=True)
    elif not observation.traces.is_gone:
        message = f"left: {', '.join(_left(observation))}{_waiting_for(observation)}"
        yield Problem(check="V17", verdict=_pending(observation), message=message, code="TOP418")


CLUSTER_RULES: Mapping[tuple[str, str], Rule] = {
    ("V01", "views"): broker_checks.cluster_id,
    ("V13", "first side"): controller,
}
RULES: Mapping[tuple[str, str], Rule] = {
    ("V01", "views"): broker_checks.cluster_id,
    ("V02", "first side"): shape,
    ("V03", "first side"): identity,
    ("V03", "views"): broker_checks.topic_ids,
    ("V04", "first side"): reassignment,
    ("V05", "first side"): deletion_marker,
    ("V06", "first side"): state,
    ("V07", "first side"): leader,
    ("V08", "first side"): isr,
    ("V09", "first side"): min_isr,
    ("V10", "first side"): preferred_leader,
    ("V11", "first side"): leader_epochs,
    ("V12", "first side"): controller_epochs,
    ("V13", "first side"): controller,
    ("V14", "views"): broker_checks.metadata,
    ("V15", "first side"): overrides,
    ("V15", "brokers' configs"): broker_checks.overrides,
    ("V16", "logs"): broker_checks.log_directories,
    ("V16", "offsets"): broker_checks.end_offsets,
}
"""By id and what it looks at, for a topic that shall be there."""
ABSENCE_RULES: Mapping[tuple[str, str], Rule] = {
    **CLUSTER_RULES,
    ("V17", "first side"): absence,
    ("V17", "views"): broker_checks.absence,
    ("V17", "logs"): broker_checks.leftover_logs,
}
"""For a topic that shall not be there."""


def _never_returns(observation: Observation) -> bool:
    """Whether a topic that the first side no longer shows is gone for good; a broker's metadata may only lag behind."""
    return observation.source == "zookeeper"


def _of_partition(check: str, verdict: Verdict, partition: int, message: str, code: str) -> Problem:
    subjects = frozenset({f"partition {partition}"})
    return Problem(check=check, verdict=verdict, message=message, code=code, subjects=subjects)


def _malformed(live: LiveTopic) -> Iterator[tuple[str, str]]:
    """Message, and a subject that stays when the message does not."""
    if not live.assignment:
        yield "it has no partitions", "no partitions"
    if sorted(live.assignment) != list(range(live.partitions)):
        yield f"partition ids are not 0 to {live.partitions - 1}: {sorted(live.assignment)}", "gaps"
    if len(live.replication_factors) > 1:
        factors = sorted(live.replication_factors)
        yield f"partitions have different replication factors: {factors}", "replication factors"
    for p, replicas in sorted(live.assignment.items()):
        if not replicas or len(set(replicas)) != len(replicas):
            yield f"partition {p} has replicas {list(replicas)}", f"partition {p}"


def _unplanned(expected: Expectation, live: LiveTopic) -> Iterator[str]:
    if expected.partitions is not None and live.partitions != expected.partitions:
        yield f"partitions: planned {expected.partitions}, live {live.partitions}"
    for p, replicas in sorted(expected.assignment.items()):
        if p in live.assignment and live.assignment[p] != tuple(replicas):
            yield f"replicas of partition {p}: planned {list(replicas)}, live {list(live.assignment[p])}"
    earlier = {p: row for p, row in live.target_assignment.items() if p < expected.earlier_partitions}
    if expected.earlier_digest is not None and assignment_digest(earlier) != expected.earlier_digest:
        yield f"replicas of the first {expected.earlier_partitions} partitions are not as before"


def _leader_problem(found: PartitionState, replicas: tuple[int, ...], brokers: Collection[int]) -> str | None:
    # The state names a dead leader for a moment, until the controller has written another.
    if found.leader < 0:
        return "has no leader"
    if found.leader not in brokers:
        return f"is led by broker {found.leader}, which is not live"
    if found.leader not in found.isr:
        return f"is led by broker {found.leader}, which is not in its ISR {list(found.isr)}"
    return None if found.leader in replicas else f"is led by broker {found.leader}, which holds no replica of it"


def _pending(observation: Observation) -> Verdict:
    return Verdict.CONVERGING if observation.traces.is_deleting or observation.live is None else Verdict.FAILED


def _left(observation: Observation) -> Iterator[str]:
    traces = observation.traces
    if traces.live is not None:
        yield "topic znode" if observation.source == "zookeeper" else "the topic"
    if traces.has_config_znode:
        yield "config znode"
    if traces.is_deleting:
        yield "deletion marker"


def _waiting_for(observation: Observation) -> str:
    held = {broker for row in observation.live.assignment.values() for broker in row} if observation.live else set()
    missing = sorted(held - set(observation.brokers))
    return f"; waits for {broker_names(missing)}" if missing else ""


def _dead(replicas: Iterable[int], brokers: Collection[int]) -> str:
    dead = sorted(broker for broker in replicas if broker not in brokers)
    return f"; {broker_names(dead)} not live" if dead else ""


def _shown(value: str | None) -> str:
    return "not set" if value is None else value

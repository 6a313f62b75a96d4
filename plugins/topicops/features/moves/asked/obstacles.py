"""Why topicops does not move replicas: the policy, the brokers' release, a move that runs, and brokers without room."""

from __future__ import annotations

from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.release import ALTER_REASSIGNMENTS, REASSIGNMENTS, REASSIGNMENTS_IN_TOPICS
from topicops.model.specs.environment import Environment
from topicops.steps.planning.blocking import Situation, moves_command
from topicops.steps.planning.reassigning import Obstacle, by_tool, unready


def obstacle(situation: Situation) -> Obstacle | None:
    """Return what must be done before the replicas of this topic can move; None: nothing."""
    if situation.is_accepted and situation.is_reassigning:
        return _accepted(situation)
    return unready(situation) or refusal_of(situation.live, situation.environment)


def _accepted(situation: Situation) -> Obstacle:
    cancel = moves_command(situation.environment.name, cancel=situation.desired.name)
    return Obstacle(
        code=Code.REASSIGNMENT_RUNS,
        reason="its replicas move already, or wait for it, by an approved change",
        way_out=f"wait until they have moved, or take them back with {cancel}",
    )


def refusal_of(live: ClusterSnapshot, environment: Environment) -> Obstacle | None:
    """Return why no replica of any topic is moved in this environment."""
    if environment.spec.policy.reassign == "refuse":
        reason = f"policy.reassign refuses moves ({environment.place_of('policy.reassign')})"
        return by_tool(Code.REPLICATION_FACTOR, reason)
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
    return by_tool(Code.OLD_BROKERS, reason)


def _runs_old_brokers(live: ClusterSnapshot, environment: Environment) -> bool:
    """Return whether a broker may be of a release without the requests for moves; what is not proved counts so."""
    if live.releases is not None:
        return live.releases.oldest < REASSIGNMENTS_IN_TOPICS
    is_written = "cluster.kafkaVersion" in environment.locations or live.source == "kafka"
    return not is_written or environment.spec.cluster.release < REASSIGNMENTS_IN_TOPICS

"""Read all that ``doctor`` looks at; what cannot be read is a finding. Nothing is written to the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from topicops.edges.places import home_problem
from topicops.features.ask.doctor.findings import DoctorReport
from topicops.features.ask.doctor.rules import examine
from topicops.features.ask.doctor.values import Area, DoctorFacts, KafkaFacts, KafkaRole
from topicops.flow.runs.access import Access
from topicops.flow.runs.files import read_needed_specs
from topicops.flow.runs.run import EnvironmentRun, home_is_set
from topicops.model.errors import ArtifactError, TopicopsError
from topicops.model.ports import Clock
from topicops.model.runs.moves import KnownMoves
from topicops.model.specs.desired import Lifecycle
from topicops.steps.clocks import difference_text
from topicops.steps.planning.right_cluster import require_cluster_id
from topicops.steps.specs.needed import no_topic

T = TypeVar("T")
Unread = dict[Area, TopicopsError]
_ROLES_THAT_DELETE: tuple[KafkaRole, ...] = ("deleter",)
_ROLES_THAT_CHANGE: tuple[KafkaRole, ...] = ("applier", "mover")


def doctor(run: EnvironmentRun) -> DoctorReport:
    """Return what can be read of the environment's cluster, and what is wrong with it."""
    environment, desired = read_needed_specs(run.files, no_topic, run.progress).require()
    access, unread = run.access(environment), Unread()
    facts = _read_source(access, unread)
    live, clock_difference = facts.snapshot, ""
    to_change: dict[KafkaRole, list[str]] = {"applier": [], "mover": [], "deleter": []}
    for name, topic in sorted(desired.topics.items()):
        if live is not None and name in live.topics:
            goes = topic.lifecycle is Lifecycle.ABSENT
            for role in _ROLES_THAT_DELETE if goes else _ROLES_THAT_CHANGE:
                to_change[role].append(name)
    if live is not None and live.source == "kafka":
        with suppress(TopicopsError), access.reader() as reader:
            clock_difference = difference_text(reader.server_time(), Clock())
    moves, moves_problem = _moves(run)
    return examine(
        replace(
            facts,
            moves=moves,
            moves_problem=moves_problem,
            read_at=run.clock.utc(),
            kafka=_read_brokers(access, unread, to_change),
            home_is_set=home_is_set(),
            home_problem=home_problem(access.home),
            clock_difference=clock_difference,
        )
    )


def _moves(run: EnvironmentRun) -> tuple[KnownMoves, str]:
    """Return our moves, and the reason why their record cannot be read."""
    try:
        return run.known_moves(), ""
    except ArtifactError as error:
        return KnownMoves(), str(error)


def _tried(unread: Unread, area: Area, read: Callable[[], T]) -> T | None:
    """Give what was read; None, and a note of the reason, where that cannot be."""
    try:
        return read()
    except TopicopsError as error:
        unread[area] = error
        return None


def _read_source(access: Access, unread: Unread) -> DoctorFacts:
    """Read the environment's cluster with states, ZooKeeper's facts, and the id of another cluster that answered."""
    area: Area = "zookeeper" if access.environment.spec.cluster.source == "zookeeper" else "snapshot"
    facts = _tried(unread, area, lambda: _facts_of_source(access, unread))
    return facts or DoctorFacts(environment=access.environment, unread=unread)


def _facts_of_source(access: Access, unread: Unread) -> DoctorFacts:
    from topicops.edges.zookeeper.diagnosis import tls_context
    from topicops.edges.zookeeper.reader import ZooKeeperReader
    from topicops.features.ask.doctor.edges.zookeeper import undecodable_znodes, zookeeper_facts

    facts = DoctorFacts(environment=access.environment, unread=unread)
    with access.reader() as reader:
        cluster_id = _tried(unread, "snapshot", reader.cluster_id)
        if cluster_id is not None:
            _tried(unread, "snapshot", lambda: require_cluster_id(cluster_id, access.environment))
        if "snapshot" in unread:
            facts = replace(facts, other_cluster_id=cluster_id)
        else:
            facts = replace(facts, snapshot=_tried(unread, "snapshot", lambda: reader.snapshot(states=True)))
        if isinstance(reader, ZooKeeperReader):
            tls = access.zookeeper().tls
            found = zookeeper_facts(reader, tls=tls_context(tls) if tls else None)
            if facts.snapshot is None and facts.other_cluster_id is None:
                found = replace(found, undecodable=undecodable_znodes(reader))
            facts = replace(facts, zookeeper=found)
    return facts


def _read_brokers(access: Access, unread: Unread, topics: Mapping[KafkaRole, Sequence[str]]) -> KafkaFacts | None:
    from topicops.features.ask.doctor.edges.brokers import kafka_facts

    endpoint = access.environment.spec.cluster.kafka
    movers: tuple[KafkaRole, ...] = ("mover",) if endpoint and endpoint.mover else ()  # else nobody may be meant to
    roles: tuple[KafkaRole, ...] = ("reader", "applier", *movers, "deleter")
    asked = {role: names for role, names in topics.items() if role in roles}
    return _tried(unread, "kafka", lambda: kafka_facts({role: access.kafka(role) for role in roles}, topics=asked))

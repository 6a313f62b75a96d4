"""The topics that verify waits for: what the last observation found, and which of them are healthy or out of time."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import msgspec

from topicops.model.choices import Source
from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.snapshot import LiveTopic, PartitionState, TopicTraces
from topicops.model.codes import Code
from topicops.model.errors import ClusterError
from topicops.model.ports import BrokerMetadata, Clock, LiveReader
from topicops.model.release import Releases
from topicops.model.runs.results import Check, Verdict
from topicops.model.specs.environment import Verify
from topicops.steps.verifying.checks import checks_of, findings
from topicops.steps.verifying.observation import (
    Expectation,
    Finding,
    FindingKey,
    Observation,
    chosen_brokers,
    log_questions,
    merged,
    replica_questions,
)

logger = logging.getLogger(__name__)

NOT_BLOCKING = (Verdict.HEALTHY, Verdict.NOT_CHECKED, Verdict.MOVING, Verdict.PRE_EXISTING)
"""Verdicts that verify does not wait for."""

ASK_FOR_DISKS_AFTER_S = 5.0
"""Seconds after which a failed log directory is a possible reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How many topics are healthy, and what verify waits for."""

    healthy: int
    topics: int
    waiting_for: tuple[str, ...]
    """One sentence for each of the first topics that are not healthy yet."""


@dataclass(slots=True)
class WatchedTopic:
    """One changed topic while verify watches it."""

    expected: Expectation
    findings: tuple[Finding, ...] = ()
    """Findings of the last observation."""
    parts_read: frozenset[str] = frozenset()
    """Parts that the last observation could read."""
    signature: object = None
    """Identity, leaders, epochs and ISRs of the last observation if it was healthy, else None."""
    before: LiveTopic | None = None
    """The topic as last observed."""
    is_confirmed: bool = False
    """Healthy twice in a row, with the same signature."""
    is_given_up: bool = False
    first_seen: dict[str, float] = field(default_factory=dict)
    """Time when each kind of finding first appeared; a kind that comes and goes keeps its first time."""

    @property
    def is_open(self) -> bool:
        return not self.is_confirmed and not self.is_given_up

    @property
    def is_watched(self) -> bool:
        """A deleted name may come back as long as verify waits for any other topic."""
        return self.is_open or (self.is_confirmed and self.expected.absent)

    def states_before(self, live: LiveTopic | None) -> Mapping[int, PartitionState]:
        """Return the states of the last observation, if it saw the same topic."""
        if live is None or self.before is None or self.before.identity != live.identity:
            return {}
        return self.before.states or {}


@dataclass(slots=True, kw_only=True)
class Watch:
    """All changed topics, and the ports that observe them."""

    reader: LiveReader
    metadata: BrokerMetadata
    deadlines: Verify
    clock: Clock
    known_findings: frozenset[FindingKey]
    broker_defaults: BrokerDefaults | None
    releases: Releases | None
    cluster_id: str
    source: Source
    topics: dict[str, WatchedTopic]
    _found: dict[str, tuple[Observation, tuple[Finding, ...]]] = field(default_factory=dict)
    """Findings of each topic's last observation, by name: several questions depend on them."""

    def open_topics(self) -> list[WatchedTopic]:
        return [topic for topic in self.topics.values() if topic.is_open]

    def observe(self) -> bool:
        """Observe every watched topic once. True: something has changed since the observation before.

        A cluster that cannot be read is a finding of every watched topic.
        """
        if not self.open_topics():
            return False
        watched = [topic for topic in self.topics.values() if topic.is_watched]
        before = [(topic.findings, topic.signature, topic.is_open) for topic in watched]
        try:
            self._observe_topics(watched)
        except ClusterError as error:
            logger.warning("cannot read topics=%d: %s", len(watched), error)
            unread = Finding(Code.V13, Verdict.DEGRADED, f"cannot be read: {error}")
            self._judge_unread(watched, unread)
        return before != [(topic.findings, topic.signature, topic.is_open) for topic in watched]

    def progress(self) -> Progress:
        waiting = [
            f"{topic.expected.topic}: {found.message}"
            for topic in self.open_topics()
            for found in _blocking(topic.findings)[:1]
        ]
        healthy = sum(topic.is_confirmed for topic in self.topics.values())
        return Progress(healthy=healthy, topics=len(self.topics), waiting_for=tuple(waiting[:5]))

    def checks(self) -> tuple[Check, ...]:
        return tuple(
            check
            for _, topic in sorted(self.topics.items())
            for check in checks_of(topic.expected, topic.findings, topic.parts_read)
        )

    def _observe_topics(self, watched: Sequence[WatchedTopic]) -> None:
        controller = (self.reader.controller_epoch(), self.reader.controller_id())
        names = [topic.expected.topic for topic in watched]
        traces = self.reader.traces(names, states=True)
        brokers = self.reader.brokers()
        if (self.reader.controller_epoch(), self.reader.controller_id()) != controller:
            message = "the controller changed while the topics were read"
            moved = Finding(Code.V13, Verdict.CONVERGING, message, Code.CONTROLLER_MOVED)
            self._judge_unread(watched, moved)
            return
        observed = {name: self._from_source(self.topics[name], traces[name], brokers, controller) for name in names}
        # Brokers are asked only about topics that are healthy in the source.
        self._ask_for_views(observed, brokers)
        self._ask_for_logs_and_configs(observed)
        self._ask_for_directories(observed)
        signatures = self._read_signatures(self._repeated(observed))
        for name, seen in observed.items():
            topic = self.topics[name]
            self._judge(topic, self._findings(seen), signatures.get(name, _signature(seen.live)))
            topic.before, topic.parts_read = seen.live, seen.parts_read

    def _from_source(
        self,
        topic: WatchedTopic,
        traces: TopicTraces,
        brokers: Collection[int],
        controller: tuple[int | None, int | None],
    ) -> Observation:
        return Observation(
            expected=topic.expected,
            traces=traces,
            brokers=frozenset(brokers),
            controller_epoch=controller[0],
            has_controller=controller[1] is not None,
            cluster_id=self.cluster_id,
            broker_defaults=self.broker_defaults,
            releases=self.releases,
            source=self.source,
            states_before=topic.states_before(traces.live),
        )

    def _ask_for_views(self, observed: dict[str, Observation], brokers: Collection[int]) -> None:
        """Ask the brokers that hold the topics; ask all brokers when a topic may be confirmed now."""
        healthy = self._healthy(observed)
        if not healthy:
            return
        chosen = frozenset(chosen_brokers(brokers))
        may_confirm = any(self._is_unchanged(name, observed[name]) for name in healthy)
        holders = {broker for name in healthy for broker in (observed[name].holders if observed[name].live else chosen)}
        views = self.metadata.views(sorted(chosen if may_confirm else holders & frozenset(brokers)), healthy)
        observed.update({name: replace(observed[name], views=views) for name in healthy})

    def _ask_for_logs_and_configs(self, observed: dict[str, Observation]) -> None:
        """Ask only about topics that may be confirmed now, so that each is normally asked for once."""
        names = self._repeated(observed)
        if not names:
            return
        logs = self.metadata.logs(merged(log_questions(observed[name]) for name in names))
        # The brokers' overrides are known already where the brokers are the source.
        asked = [name for name in names if observed[name].expected.configs] if self.source == "zookeeper" else []
        overrides = self.metadata.overrides(asked) if asked else {}
        for name in names:
            observed[name] = replace(observed[name], logs=logs, broker_overrides=overrides.get(name))

    def _ask_for_directories(self, observed: dict[str, Observation]) -> None:
        """Ask about topics that have been unhealthy for a while: a failed disk never recovers by itself."""
        since = self.clock.now() - ASK_FOR_DISKS_AFTER_S
        open_topics = {name: seen for name, seen in observed.items() if self.topics[name].is_open and seen.live}
        late = [name for name in open_topics if any(at <= since for at in self.topics[name].first_seen.values())]
        wrong = [name for name in late if _blocking(self._findings(observed[name]))]
        if wrong:
            directories = self.metadata.logs(merged(replica_questions(observed[name]) for name in wrong))
            observed.update({name: replace(observed[name], directories=directories) for name in wrong})

    def _read_signatures(self, names: Sequence[str]) -> Mapping[str, object]:
        """Read the source again: an ISR may shrink while the brokers answer."""
        traces = self.reader.traces(names, states=True) if names else {}
        return {name: _signature(found.live) for name, found in traces.items()}

    def _repeated(self, observed: Mapping[str, Observation]) -> list[str]:
        """Open topics that are healthy, as they were at the observation before."""
        return self._healthy({name: seen for name, seen in observed.items() if self._is_unchanged(name, seen)})

    def _healthy(self, observed: Mapping[str, Observation]) -> list[str]:
        """Open topics without a blocking finding so far."""
        names = [name for name in observed if self.topics[name].is_open]
        return [name for name in names if not _blocking(self._findings(observed[name]))]

    def _is_unchanged(self, name: str, observation: Observation) -> bool:
        return self.topics[name].signature == _signature(observation.live)

    def _findings(self, observation: Observation) -> tuple[Finding, ...]:
        """Return the findings of an observation; those known from before the run become pre-existing."""
        topic = observation.expected.topic
        last, found = self._found.get(topic, (None, ()))
        if last is not observation:
            found = tuple(
                replace(finding, verdict=Verdict.PRE_EXISTING, message=f"{finding.message} (so before the run)")
                if self._is_known(topic, finding)
                else finding
                for finding in findings(observation)
            )
            self._found[topic] = (observation, found)
        return found

    def _is_known(self, topic: str, finding: Finding) -> bool:
        keys = {(topic, finding.check, subject) for subject in finding.subjects}
        return bool(keys) and keys <= self.known_findings

    def _judge_unread(self, watched: Iterable[WatchedTopic], finding: Finding) -> None:
        """Judge topics that could not be read by the reason alone."""
        for topic in watched:
            topic.parts_read = frozenset()
            self._judge(topic, (finding,), None)

    def _judge(self, topic: WatchedTopic, found: tuple[Finding, ...], signature: object) -> None:
        blocking = _blocking(found)
        if blocking:
            topic.findings, topic.signature, topic.is_confirmed = found, None, False
            topic.is_given_up = self._is_out_of_time(topic, blocking)
            return
        # Replicas that move join and leave ISRs all the time.
        is_same = topic.signature == signature or (topic.signature is not None and topic.expected.moving is not None)
        if topic.signature is not None and not is_same:
            message = "leaders or ISRs changed between two readings"
            changed = Finding(Code.V11, Verdict.CONVERGING, message)
            topic.findings, topic.signature = (*found, changed), signature
            topic.is_given_up = self._is_out_of_time(topic, [changed])
            return
        topic.is_confirmed = is_same
        topic.findings, topic.signature = found, signature

    def _is_out_of_time(self, topic: WatchedTopic, blocking: Sequence[Finding]) -> bool:
        """Return whether a finding is final or past the deadline of its kind: then the topic cannot become healthy."""
        now = self.clock.now()
        for finding in blocking:
            topic.first_seen.setdefault(_kind(finding), now)
        deadlines: Mapping[str, timedelta] = msgspec.structs.asdict(self.deadlines)
        return any(finding.is_final for finding in blocking) or any(
            now - topic.first_seen[kind] >= deadlines[kind].total_seconds() for kind in map(_kind, blocking)
        )


_KINDS: Mapping[str, str] = {
    Code.V08: "isr",
    Code.V09: "isr",
    Code.V14: "metadata",
    Code.V15: "metadata",
    Code.V16: "metadata",
    Code.V17: "deletes",
}


def _kind(finding: Finding) -> str:
    return _KINDS.get(finding.check, "leaders")


def _blocking(found: Iterable[Finding]) -> list[Finding]:
    """Return the findings that verify waits for: neither remarks nor pre-existing ones."""
    return [finding for finding in found if finding.verdict not in NOT_BLOCKING]


def _signature(live: LiveTopic | None) -> object:
    if live is None:
        return "absent"
    states = {p: (found.leader, found.leader_epoch, found.version) for p, found in (live.states or {}).items()}
    return live.identity, tuple(sorted(states.items()))

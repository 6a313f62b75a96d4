"""Is each changed topic right in ZooKeeper and on the brokers? Nothing here writes to the cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf

from topicops.edges.home.journal import intended_topics
from topicops.flow.runs.access import Access
from topicops.flow.runs.outcomes import outcomes_so_far
from topicops.flow.runs.run import (
    KINDS,
    CountedSummary,
    Run,
    baseline_file,
    read_environment,
    read_needed_specs,
)
from topicops.flow.runs.unverified import note_verified_topics, unverified
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.errors import TopicopsError
from topicops.model.ports import Clock
from topicops.model.printable import plural
from topicops.model.runs.results import Check, Outcome, Verdict
from topicops.model.specs.environment import Verify
from topicops.model.unexpected import log_error, sentence
from topicops.steps.planning.cluster_guard import require_cluster_id
from topicops.steps.specs.needed import no_topic
from topicops.steps.verifying.cluster_health import findings_before_run
from topicops.steps.verifying.observation import Expectation, FindingKey
from topicops.steps.verifying.verify import settled
from topicops.steps.verifying.verify import verify as verify_step
from topicops.steps.verifying.watch import Progress, Watch, WatchedTopic

logger = logging.getLogger(__name__)

AT_ONCE = Verify(leaders=timedelta(), isr=timedelta(), metadata=timedelta(), deletes=timedelta())
"""Deadlines of who looks and does not wait."""
NAMED = 5
"""How many topics a sentence names."""
SAID_AGAIN_S = 5.0
"""After how long verify says again how far it is, while no topic becomes right or wrong."""


@dataclass(slots=True, kw_only=True)
class ProgressLines:
    """Says how far verify is: at once when more or fewer topics are right, and else from time to time.

    What verify waits for may change with every observation, several times in a second.
    """

    say: Callable[[str], None]
    clock: Clock = field(default_factory=Clock)
    _healthy: int | None = None
    _said_at: float = -inf

    def take(self, seen: Progress) -> None:
        now = self.clock.now()
        if seen.healthy != self._healthy or now - self._said_at >= SAID_AGAIN_S:
            self._healthy, self._said_at = seen.healthy, now
            self.say(progress_line(seen))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySummary(CountedSummary):
    """How many checks have each verdict."""

    topics: int


def record_baseline(run: Run, live: ClusterSnapshot, topics: Collection[str], *, kind: str) -> None:
    """``baseline-<kind>.json``: what is wrong with these topics before anything is sent.

    Only problems from before this run count: a file that an earlier try of the same task left stays, and topics that
    another task has begun to change are left out.
    """
    name = baseline_file(kind)
    unchanged = live.topics.keys() & (set(topics) - intended_topics(run.store.folder))
    if run.store.has(name) or not unchanged:
        return
    access = run.access(read_environment(run))
    with access.broker_views() as metadata:
        found = findings_before_run(access.with_broker_answers(live), metadata, topics=unchanged)
    run.store.write_value(name, tuple(sorted(found)))


def verify(run: Run, *, interrupted: Callable[[], bool] = lambda: False) -> VerifySummary:
    """``checks.json``: each topic that apply touched; problems from before the run are marked as such."""
    return verify_outcomes(run, outcomes_so_far(run), known_findings=_known_findings(run), interrupted=interrupted)


def verify_or_note_failure(run: Run, *, interrupted: Callable[[], bool]) -> None:
    """As ``verify``, but an error becomes a failed check, so that the report still lists the changes already made."""
    try:
        verify(run, interrupted=interrupted)
    except Exception as error:  # noqa: BLE001 - whatever it is, the changes must be reported
        log_error(logger, f"nothing is verified environment={run.environment}", error, level=logging.INFO)
        message = f"nothing could be verified: {sentence(error)}"
        code = error.code if isinstance(error, TopicopsError) else None
        write_checks(run, [Check(id=Code.V13, topic="", verdict=Verdict.DEGRADED, message=message, code=code)])


def verify_outcomes(
    run: Run,
    outcomes: Sequence[Outcome],
    *,
    known_findings: Collection[FindingKey],
    interrupted: Callable[[], bool] = lambda: False,
) -> VerifySummary:
    """``checks.json`` for the topics of these outcomes."""
    environment = read_environment(run)
    access = run.access(environment)
    with access.questions() as questions:
        defaults, releases = questions.broker_defaults(), questions.releases()
    with access.reader() as reader, access.broker_views() as metadata:
        checks = verify_step(
            run.read_plan(),
            outcomes,
            reader=reader,
            metadata=metadata,
            deadlines=environment.spec.verify,
            clock=Clock(),
            progress=ProgressLines(say=run.progress).take,
            interrupted=interrupted,
            known_findings=known_findings,
            broker_defaults=defaults,
            releases=releases,
            source=environment.spec.cluster.source,
        )
    summary = write_checks(run, checks)
    note_verified_topics(run, {outcome.topic for outcome in outcomes})
    return summary


def verify_left(run: Run) -> list[str]:
    """Look at each topic that an earlier run changed and did not come to verify; a sentence for each such run.

    Raises:
        ClusterError: The cluster cannot be read.
    """
    left = unverified(run)
    if not left:
        return []
    there = sorted(left.keys() & run.read_live().topics.keys())
    checks = check_topics(run, there) if there else ()
    unhealthy = {check.topic: check.message for check in checks if check.is_problem}
    sentences = []
    for by in sorted(set(left.values())):
        topics = [topic for topic in left if left[topic] == by]
        bad = [f"{topic}: {unhealthy[topic]}" for topic in topics if topic in unhealthy]
        gone = [topic for topic in topics if topic not in there]
        parts = [
            f"{len(topics) - len(bad) - len(gone)} healthy",
            f"{len(gone)} not there: {', '.join(gone[:NAMED])}" if gone else "",
            f"{len(bad)} not healthy: {'; '.join(bad[:NAMED])}" if bad else "",
        ]
        said = ", ".join(filter(None, parts))
        changed = f"{plural(len(topics), 'topic')} that it may have changed"
        sentences.append(f"run {by} ended before it had verified {changed}; now: {said}")
    note_verified_topics(run, left.keys())
    return sentences


def check_topics(run: Run, names: Collection[str]) -> tuple[Check, ...]:
    """The checks of these topics as they are now: each must be there and healthy. Writes nothing.

    A healthy topic is observed twice, as by ``verify``; one that is not healthy is not waited for.

    Raises:
        ClusterError: The cluster cannot be read.
        WrongTargetError: It is another one than the environment's.
    """
    environment, _ = read_needed_specs(run, no_topic).require()
    access = run.access(environment)
    with access.questions() as questions:
        defaults, releases = questions.broker_defaults(), questions.releases()
    with access.reader() as reader, access.broker_views() as metadata:
        cluster_id = reader.cluster_id()
        require_cluster_id(cluster_id, environment)
        watch = Watch(
            reader=reader,
            metadata=metadata,
            deadlines=AT_ONCE,
            clock=Clock(),
            known_findings=frozenset(),
            broker_defaults=defaults,
            releases=releases,
            cluster_id=cluster_id,
            source=environment.spec.cluster.source,
            topics={name: WatchedTopic(Expectation(topic=name)) for name in names},
        )
        return settled(watch, clock=Clock())


def progress_line(seen: Progress) -> str:
    waiting = f"; {seen.waiting_for[0]}" if seen.waiting_for else ""
    topics = "topic is" if seen.topics == 1 else "topics are"
    return f"verify: {seen.healthy} of {seen.topics} {topics} right{waiting}"


def write_checks(run: Run, checks: Sequence[Check]) -> VerifySummary:
    path = run.store.write_value("checks.json", tuple(checks))
    counts = {verdict.value: sum(check.verdict is verdict for check in checks) for verdict in Verdict}
    return VerifySummary(path=str(path), topics=len({check.topic for check in checks if check.topic}), counts=counts)


def still_absent(access: Access, names: Collection[str]) -> list[str]:
    """Names that the source still does not have: a topic may have been created since the snapshot."""
    with access.reader() as reader:
        traces = reader.traces(sorted(names))
    return [name for name in sorted(names) if traces[name].live is None]


def _known_findings(run: Run) -> frozenset[FindingKey]:
    """The baselines of every task that sent something."""
    names = [name for name in (baseline_file(kind) for kind in KINDS) if run.store.has(name)]
    return frozenset(found for name in names for found in run.store.read_value(name, tuple[FindingKey, ...]))

"""Is each changed topic right in ZooKeeper and on the brokers? Nothing here writes to the cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from math import inf

from topicops.edges.home.journal import intended_topics
from topicops.flow.runs.access import Access
from topicops.flow.runs.files import read_needed_specs
from topicops.flow.runs.kept import keep_checks
from topicops.flow.runs.memory import Unverified, unverified_of
from topicops.flow.runs.run import EnvironmentRun, Run, baseline_file
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError
from topicops.model.plans.plan import Plan
from topicops.model.ports import Clock
from topicops.model.printable import plural
from topicops.model.runs.moves import TopicMoves
from topicops.model.runs.results import Check, Outcome
from topicops.model.specs.environment import Verify
from topicops.steps.planning.right_cluster import require_cluster_id
from topicops.steps.specs.needed import no_topic
from topicops.steps.verifying.observation import Expectation, FindingKey
from topicops.steps.verifying.verify import findings_before_run, settled
from topicops.steps.verifying.verify import verify as verify_step
from topicops.steps.verifying.watch import Progress, Watch, WatchedTopic

AT_ONCE = Verify(leaders=timedelta(), isr=timedelta(), metadata=timedelta(), deletes=timedelta())
"""Deadlines of who looks and does not wait."""
NAMED = 5
"""Number of topics that a sentence names."""
SAID_AGAIN_S = 5.0
"""Seconds after which verify repeats its progress, while no topic becomes right or wrong."""


@dataclass(slots=True, kw_only=True)
class ProgressLines:
    """Says how far verify is: at once when more or fewer topics are right, and else from time to time.

    What verify waits for may change with every observation, several times in a second.
    """

    say: Callable[[str], None]
    clock: Clock
    _healthy: int | None = None
    _said_at: float = -inf

    def take(self, seen: Progress) -> None:
        now = self.clock.now()
        if seen.healthy != self._healthy or now - self._said_at >= SAID_AGAIN_S:
            self._healthy, self._said_at = seen.healthy, now
            self.say(progress_line(seen))


def record_baseline(
    run: Run, access: Access, live: ClusterSnapshot, topics: Collection[str], *, kind: str
) -> Collection[FindingKey]:
    """Write ``baseline-<kind>.json``: what is wrong with these topics before anything is sent.

    Only problems from before this run count: a file that an earlier try of the same task left stays, and topics that
    another task has begun to change are left out.
    """
    name = baseline_file(kind)
    if run.store.has(name):
        return run.store.read_value(name, tuple[FindingKey, ...])
    unchanged = live.topics.keys() & (set(topics) - intended_topics(run.store.folder))
    if not unchanged:
        return ()
    with access.broker_views() as metadata:
        found = tuple(sorted(findings_before_run(access.with_broker_answers(live), metadata, topics=unchanged)))
    run.store.write_value(name, found)
    return found


def verify_outcomes(
    run: Run,
    access: Access,
    plan: Plan,
    outcomes: Sequence[Outcome],
    *,
    known_findings: Collection[FindingKey],
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[Check, ...]:
    """Verify the topics of these outcomes, and keep the checks."""
    environment = access.environment
    with access.questions() as questions:
        defaults, releases = questions.broker_defaults(), questions.releases()
    with access.reader() as reader, access.broker_views() as metadata:
        checks = verify_step(
            plan,
            outcomes,
            reader=reader,
            metadata=metadata,
            deadlines=environment.spec.verify,
            clock=run.clock,
            progress=ProgressLines(say=run.progress, clock=run.clock).take,
            interrupted=interrupted,
            known_findings=known_findings,
            broker_defaults=defaults,
            releases=releases,
            source=environment.spec.cluster.source,
            moving=topics_that_move(access),
        )
    keep_checks(run, checks)
    Unverified(access.home, environment.name, run.name).note_verified({outcome.topic for outcome in outcomes})
    return tuple(checks)


def verify_left(run: EnvironmentRun) -> list[str]:
    """Look at each topic that an earlier run changed and did not come to verify; a sentence for each such run.

    Raises ``ClusterError``: the cluster cannot be read.
    """
    unverified = unverified_of(run)
    left = unverified.earlier()
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
    unverified.note_verified(left.keys())
    return sentences


def check_topics(run: EnvironmentRun, names: Collection[str]) -> tuple[Check, ...]:
    """Return the checks of these topics as they are now: each must be there and healthy. Writes nothing.

    A healthy topic is observed twice, as by ``verify``; one that is not healthy is not waited for.

    Raises:
        ClusterError: The cluster cannot be read.
        WrongTargetError: It is another one than the environment's.
    """
    environment, _ = read_needed_specs(run.files, no_topic, run.progress).require()
    access = run.access(environment)
    moving = topics_that_move(access)
    with access.questions() as questions:
        defaults, releases = questions.broker_defaults(), questions.releases()
    with access.reader() as reader, access.broker_views() as metadata:
        cluster_id = reader.cluster_id()
        require_cluster_id(cluster_id, environment)
        watch = Watch(
            reader=reader,
            metadata=metadata,
            deadlines=AT_ONCE,
            clock=run.clock,
            known_findings=frozenset(),
            broker_defaults=defaults,
            releases=releases,
            cluster_id=cluster_id,
            source=environment.spec.cluster.source,
            topics={name: WatchedTopic(Expectation(topic=name, moving=moving.get(name))) for name in names},
        )
        return settled(watch)


def topics_that_move(access: Access) -> Mapping[str, TopicMoves]:
    """Return the topics that topicops moves. What cannot be read counts as a move of somebody else."""
    with suppress(ArtifactError):
        return access.known_moves().topics
    return {}


def progress_line(seen: Progress) -> str:
    waiting = f"; {seen.waiting_for[0]}" if seen.waiting_for else ""
    topics = "topic is" if seen.topics == 1 else "topics are"
    return f"verify: {seen.healthy} of {seen.topics} {topics} right{waiting}"


def still_absent(access: Access, names: Collection[str]) -> list[str]:
    """Return names that the source still does not have: a topic may have been created since the snapshot."""
    with access.reader() as reader:
        traces = reader.traces(sorted(names))
    return [name for name in sorted(names) if traces[name].live is None]

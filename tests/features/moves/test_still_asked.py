"""Whether the files still ask for a move that has not begun."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
import pytest

from topicops.features.moves.carrying.still_asked import still_asked
from topicops.features.moves.record import PartitionMove, TopicMove
from topicops.model.plans.changes import MoveReason
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Cluster, EnvironmentSpec, Policy

FACTOR, ASSIGNMENT, DRAIN, BALANCE = MoveReason.FACTOR, MoveReason.ASSIGNMENT, MoveReason.DRAIN, MoveReason.BALANCE
HERE = Location(file="topics/tests/bills.yaml", line=3)
ROWS = {0: (1, 2, 3), 1: (2, 3, 1)}


def move(why: MoveReason, drained: tuple[int, ...] = ()) -> TopicMove:
    """Return a move to ``ROWS``."""
    return TopicMove(
        topic="bills",
        identity="id",
        why=why,
        digest="d",
        run="cli/1",
        accepted_at=datetime(2026, 1, 1, tzinfo=UTC),
        partitions={p: PartitionMove(origin=(4, *row[1:]), target=row) for p, row in ROWS.items()},
        drained=drained,
    )


def topic(
    factor: int = 3, assignment: Mapping[int, tuple[int, ...]] | None = None, lifecycle: Lifecycle = Lifecycle.PRESENT
) -> DesiredTopic:
    return DesiredTopic(
        name="bills",
        owner="team",
        location=HERE,
        partitions=2,
        replication_factor=factor,
        assignment=assignment,
        lifecycle=lifecycle,
    )


def reason(moved: TopicMove, described: DesiredTopic | None, **spec: object) -> str:
    cluster = Cluster(cluster_class="sandbox", draining=spec.pop("draining", ()))
    desired = Desired(environment="local", topics={"bills": described} if described else {}, files=1)
    return still_asked(moved, desired, EnvironmentSpec(cluster=cluster, **spec))


@pytest.mark.parametrize(
    ("moved", "described"),
    [
        pytest.param(move(FACTOR), topic(), id="the factor"),
        pytest.param(move(ASSIGNMENT), topic(assignment=ROWS), id="the same rows"),
        pytest.param(move(ASSIGNMENT), topic(assignment={**ROWS, 2: (3, 1, 2)}), id="the same rows, and more"),
        pytest.param(move(BALANCE), topic(), id="a balance, of the same factor"),
        pytest.param(move(BALANCE), None, id="a balance of a topic without a file"),
        pytest.param(move(DRAIN), topic(), id="a drain by the command"),
    ],
)
def test_what_the_files_still_ask_for_goes_on(moved: TopicMove, described: DesiredTopic | None) -> None:
    assert reason(moved, described) == ""


@pytest.mark.parametrize(
    ("moved", "described", "why"),
    [
        pytest.param(move(FACTOR), topic(factor=2), "replicationFactor 2", id="another factor"),
        pytest.param(move(BALANCE), topic(factor=2), "replicationFactor 2", id="another factor, in a balance"),
        pytest.param(move(ASSIGNMENT), topic(assignment={0: (1, 2, 4), 1: (2, 3, 1)}), "other replicas", id="rows"),
        pytest.param(move(ASSIGNMENT), topic(), "gives no replicas any more", id="no rows any more"),
        pytest.param(move(BALANCE), topic(assignment={0: (1, 2, 4), 1: (2, 3, 1)}), "other replicas", id="by hand"),
        pytest.param(move(FACTOR), None, "no file", id="no file"),
        pytest.param(move(BALANCE), topic(lifecycle=Lifecycle.PAUSED), "pauses the topic", id="paused"),
        pytest.param(move(BALANCE), topic(lifecycle=Lifecycle.ABSENT), "deletes the topic", id="a tombstone"),
    ],
)
def test_what_the_files_no_longer_ask_for_is_named(moved: TopicMove, described: DesiredTopic | None, why: str) -> None:
    assert why in reason(moved, described)


@pytest.mark.parametrize(
    ("draining", "why"),
    [
        pytest.param((4,), "", id="still drained"),
        pytest.param((5,), "cluster.draining no longer has 4", id="another broker"),
        pytest.param((), "cluster.draining no longer has 4", id="none"),
    ],
)
def test_a_drain_ends_with_its_line_in_the_environment(draining: tuple[int, ...], why: str) -> None:
    assert reason(move(DRAIN, drained=(4,)), topic(), draining=draining) == why


@pytest.mark.parametrize(
    ("allowed", "why"),
    [
        pytest.param("allow", "", id="allowed"),
        pytest.param("refuse", "policy.drainUnmanaged no longer allows it", id="refused"),
    ],
)
def test_a_topic_without_a_file_is_drained_while_the_policy_allows_it(allowed: str, why: str) -> None:
    policy = msgspec.convert({"drainUnmanaged": allowed}, Policy)
    assert reason(move(DRAIN, drained=(4,)), None, draining=(4,), policy=policy) == why

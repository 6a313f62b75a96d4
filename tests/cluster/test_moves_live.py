"""Moves of replicas on real brokers: nothing is lost and nothing is left, whatever happens meanwhile.

By hand, as a person does with Kafka's own tool, other moves and throttles are set beside ours.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fixtures.cluster import running
from fixtures.guarded_broker import GuardedBroker
from fixtures.kill_points import POINT, TRACE
from fixtures.killable import with_tests_on_path
from fixtures.live import until
from fixtures.load import Load
from fixtures.moving import NOTHING, Moving, spread, tripled
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_views import BrokerViews
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.features.moves.carrying.records import asked_to_cancel
from topicops.features.moves.edges.cluster import KafkaMoveCluster
from topicops.features.moves.record import MOVES, Stage, TopicPartition
from topicops.model.errors import ClusterError
from topicops.model.plans.changes import MoveReason
from topicops_local.cluster import LocalCluster

pytestmark = pytest.mark.cluster
SLOW = 1_000_000
"""Bytes a second at which a megabyte takes some seconds, once the first ones have gone at full speed."""
ROTATED = {1: (2, 3, 1), 2: (3, 1, 2), 3: (1, 2, 3)}
"""Target of a partition by its only replica: another broker leads."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("3.9.2", id="3.9.2"),
        pytest.param("4.4.0", id="4.4.0"),
        pytest.param("2.4.1", id="2.4.1", marks=pytest.mark.soak),
        pytest.param("2.8.2", id="2.8.2", marks=pytest.mark.soak),
    ],
)
def cluster(request: pytest.FixtureRequest, fast_folder: Path) -> Iterator[LocalCluster]:
    """With ZooKeeper, but for 4.4."""
    kafka = str(request.param)
    with running(fast_folder / f"moves-{kafka}", kafka=kafka) as found:
        yield found


@pytest.fixture
def moving(cluster: LocalCluster, workspace: Workspace) -> Iterator[Moving]:
    """Brokers that all run, without topics, throttles and moves before and after the test."""
    workspace.limits = {"movesPerBroker": 50}
    workspace.apply_settings = {"throttle": 20_000_000}
    found = Moving(workspace=workspace, cluster=cluster)
    found.aim()
    yield found
    for broker in cluster.broker_ports:
        cluster.start_broker(broker)
    found.remove_all()
    with found.mover() as mover:
        for broker in cluster.broker_ports:
            assert mover.set_rate(broker, None) == ""


def rotated(rows: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    return {p: ROTATED[row[0]] for p, row in rows.items()}


def accept_slow(moving: Moving, *, targets: Mapping[int, tuple[int, ...]] | None = None) -> None:
    """Accept the moves of ``bills``, which take long, and make the first step."""
    moving.workspace.apply_settings = {"throttle": SLOW}
    moving.create({"bills": spread(3)}, records=200)
    moving.accept({"bills": targets or tripled(spread(3))})
    moving.step()
    until(lambda: "bills" in moving.moving())


def by_hand(moving: Moving, rows: Mapping[int, tuple[int, ...] | None]) -> None:
    """Ask for moves of ``bills``, as another tool does; None cancels."""
    with moving.mover() as mover:
        answers = mover.alter({TopicPartition("bills", p): row for p, row in rows.items()})
    assert set(answers.values()) == {""}


def notes_of(moving: Moving) -> str:
    return "\n".join(moving.record.notes)


@pytest.mark.parametrize(
    ("topics", "records"), [pytest.param(4, 10, id="short"), pytest.param(20, 30, id="long", marks=pytest.mark.soak)]
)
def test_factor_1_to_3_under_load_loses_nothing_and_leaves_nothing(moving: Moving, topics: int, records: int) -> None:
    rows = {f"bills{number}": spread(6) for number in range(topics)}
    moving.workspace.apply_settings = {"throttle": 5_000_000}
    moving.create(rows, records=records)
    load = Load(moving.cluster.bootstrap_servers, [(name, p) for name in rows for p in range(6)], 0.01)

    with load.running():
        moving.accept({name: rotated(found) for name, found in rows.items()})
        moving.step()
        meanwhile = moving.left()
        moving.until_over(timeout_s=240)

    assert len(meanwhile.lists) == 2 * min(topics, 50 // 6 + 1)
    assert len(meanwhile.rates) == 2 * 3
    assert load.errors == []
    assert load.sent
    assert load.lost() == []
    live = moving.look()
    assert {name: live.topics[name].assignment for name in rows} == {
        name: rotated(found) for name, found in rows.items()
    }
    until(lambda: moving.left() == NOTHING, timeout_s=10)
    assert {end.status for end in moving.record.ended} == {"done"}


def killed(moving: Moving, point: str, trace: Path | None = None) -> int:
    """Make steps in a process that dies at that point; gives its exit status."""
    moving.workspace.write_environment()
    more = {POINT: point, **({TRACE: str(trace)} if trace else {})}
    command = [sys.executable, "-m", "fixtures.killable_moves"]
    found = subprocess.run(
        command, env=with_tests_on_path() | more, check=False, timeout=120, cwd=moving.workspace.folder
    )
    return found.returncode


def prepare(moving: Moving) -> None:
    """Accept one wave: a topic that gets replicas, and one that gets others. No lease outlives its process."""
    moving.aim(lease="file")
    moving.create({"bills": spread(3), "orders": {0: (1, 2), 1: (2, 3)}}, records=1)
    moving.accept({"bills": rotated(spread(3)), "orders": {0: (3, 2), 1: (1, 3)}})


POINTS = [
    *("after add #2", "before alter", "during alter", "after remove"),
    *(
        pytest.param(point, marks=pytest.mark.soak)
        for point in ("after keep", "during add", "after rate", "after alter", "before elect", "during rate #4")
    ),
]


@pytest.mark.parametrize("point", POINTS)
def test_a_step_killed_at_a_request_is_carried_on_by_the_next_one(moving: Moving, point: str) -> None:
    prepare(moving)

    assert killed(moving, point) == -9
    moving.until_over()

    assert_moved(moving)


def assert_moved(moving: Moving) -> None:
    live = moving.look()
    assert live.topics["bills"].assignment == rotated(spread(3))
    assert live.topics["orders"].assignment == {0: (3, 2), 1: (1, 3)}
    until(lambda: moving.left() == NOTHING, timeout_s=10)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_step_killed_at_each_point_is_carried_on_by_the_next_one(moving: Moving, tmp_path: Path) -> None:
    prepare(moving)
    trace = tmp_path / "points.txt"
    assert killed(moving, "", trace) == 0
    assert_moved(moving)
    reached: dict[str, int] = {}
    for point in trace.read_text().splitlines():
        reached[point] = reached.get(point, 0) + 1

    for point, times in reached.items():
        for number in range(1, times + 1):
            moving.remove_all()
            prepare(moving)
            assert killed(moving, f"{point} #{number}") in (-9, 0), (point, number)  # 0: fewer readings this time
            moving.until_over()
            assert_moved(moving)


def test_a_move_that_a_person_cancels_goes_back_and_leaves_nothing(moving: Moving) -> None:
    accept_slow(moving)
    file = MOVES.of(moving.run.home, "local")

    file.write(asked_to_cancel(moving.record, {"bills"}, datetime.now(UTC)))
    moving.until_over()

    assert moving.look().topics["bills"].assignment == spread(3)
    assert [end.status for end in moving.record.ended] == ["cancelled"]
    until(lambda: moving.left() == NOTHING, timeout_s=30)  # 2.8 to 3.4 with ZooKeeper keep copies (KAFKA-13972)


def test_a_target_that_dies_is_given_up_and_its_rate_is_removed_when_it_is_back(moving: Moving) -> None:
    moving.workspace.verify = {"moves": "5s"}
    accept_slow(moving, targets={0: (1, 3), 1: (2, 3)})
    moving.cluster.kill(3)
    until(lambda: moving.has_lost(3))

    until(lambda: moving.step() is not None and not any(moving.record.moving()), timeout_s=120)

    assert moving.look().topics["bills"].assignment == spread(3)
    assert [rate.broker for rate in moving.record.rates] == [3]
    assert "Broker 3 is not live; a step after its return" in notes_of(moving)
    moving.cluster.start_broker(3)
    moving.until_over()
    assert moving.left().rates == moving.left().lists == ()


def test_without_a_replica_of_the_origin_in_sync_nothing_is_cancelled(moving: Moving) -> None:
    accept_slow(moving, targets={0: (2, 3)})
    moving.cluster.kill(1)
    until(lambda: moving.has_lost(1))
    MOVES.of(moving.run.home, "local").write(asked_to_cancel(moving.record, {"bills"}, datetime.now(UTC)))

    moving.step()

    assert "no leader; it comes back with a broker of 1" in moving.record.notes[0]
    assert "cannot be cancelled: no replica of 1 is live and in sync" in notes_of(moving)
    moving.cluster.start_broker(1)
    moving.until_over()
    assert moving.look().topics["bills"].assignment == spread(3)
    assert moving.left().rates == moving.left().lists == ()


@pytest.mark.soak  # on 3.9.2 one of three partitions is sometimes not over within 60 s, for a reason not yet known
def test_a_throttle_of_somebody_else_keeps_a_move_from_starting_and_stays(moving: Moving) -> None:
    moving.create({"bills": spread(3)}, records=1)
    moving.accept({"bills": tripled(spread(3))})
    with moving.mover() as mover:
        assert mover.set_rate(2, 7_000) == ""
        until(lambda: mover.brokers()[2].follower_rate == 7_000)

        moving.step()

        assert "TOP313" in notes_of(moving)
        assert moving.moving() == {}
        assert mover.brokers()[2].leader_rate == 7_000
        assert mover.set_rate(2, None) == ""
    moving.until_over()
    assert_factor_3(moving)


def assert_factor_3(moving: Moving) -> None:
    assert moving.look().topics["bills"].assignment == tripled(spread(3))
    until(lambda: moving.left() == NOTHING, timeout_s=10)


def test_a_move_that_somebody_else_cancels_is_not_begun_again(moving: Moving) -> None:
    accept_slow(moving)
    moving.step()

    by_hand(moving, dict.fromkeys(moving.moving()["bills"]))
    moving.until_over()

    assert moving.look().topics["bills"].assignment == spread(3)
    assert [end.status for end in moving.record.ended] == ["dropped"]
    assert moving.left().rates == moving.left().lists == ()


def test_a_move_of_somebody_else_is_waited_for_and_never_replaced(moving: Moving) -> None:
    moving.create({"bills": spread(3)}, records=200)
    with moving.mover() as mover:
        for broker in moving.cluster.broker_ports:
            mover.set_rate(broker, 1_000)
        mover.add_entries("bills", ["0:1"], ["0:2"])
        until(lambda: mover.brokers()[2].follower_rate == mover.brokers()[1].leader_rate == 1_000)
        by_hand(moving, {0: (1, 2)})
        if "bills" not in moving.moving():
            pytest.skip("it was over before it could be seen")
        moving.accept({"bills": {0: (1, 3)}}, why=MoveReason.BALANCE)

        moving.step()

        assert "somebody else moves it" in notes_of(moving)
        assert moving.record.topics[0].partitions[0].stage is Stage.ACCEPTED


def test_a_topic_that_is_deleted_while_it_moves_leaves_nothing(moving: Moving) -> None:
    accept_slow(moving)

    moving.delete("bills")
    moving.until_over()

    assert [end.status for end in moving.record.ended] == ["dropped"]
    assert moving.left() == NOTHING


def test_a_controller_that_dies_takes_no_move_with_it(moving: Moving) -> None:
    accept_slow(moving, targets=rotated(spread(3)))
    controller = moving.look().controller_id
    assert controller is not None
    moving.cluster.kill(controller)
    for _ in range(5):
        with suppress(ClusterError):
            moving.step()
        time.sleep(1)

    moving.cluster.start_broker(controller)
    moving.workspace.apply_settings = {"throttle": 50_000_000}
    moving.until_over()

    assert moving.look().topics["bills"].assignment == rotated(spread(3))
    until(lambda: moving.left() == NOTHING, timeout_s=30)


def test_the_right_that_the_mover_lacks_is_named_before_anything_is_written(guarded_broker: GuardedBroker) -> None:
    properties = guarded_broker.properties("reader")
    with (
        ZooKeeperReader(guarded_broker.cluster.zookeeper_hosts) as reader,
        closing(BrokerViews(properties)) as views,
        KafkaMoveCluster(properties, reader, views) as mover,
        pytest.raises(ClusterError, match=r"User:reader lacks Alter on the cluster \(TOP804\): grant it"),
    ):
        mover.require_rights({"owned.bills"})


def test_a_file_that_asks_for_more_replicas_is_planned_applied_and_moved(moving: Moving) -> None:
    moving.create({"bills": spread(3)}, records=1)
    moving.workspace.topic("bills", partitions=3, replicationFactor=3)

    planned = moving.workspace.plan()
    applied = moving.workspace.approve()
    moving.until_over()

    assert planned.status == 0, planned.out + planned.err
    assert applied.status == 0, applied.out + applied.err
    assert "moving" in applied.out + applied.err
    assert moving.look().topics["bills"].replication_factors == {3}
    until(lambda: moving.left() == NOTHING, timeout_s=10)
    assert "No changes." in moving.workspace.plan().out

"""Moves to a broker whose disk has little room, on real brokers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fixtures.live import until
from fixtures.moving import NOTHING, SLOW, Moving, notes_of
from fixtures.small_disk import may_mount, small_disk
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.model.cluster.snapshot import LogDirectories
from topicops.model.release import Release
from topicops_local.cluster import LocalCluster

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not may_mount(), reason="only root can mount a disk of its own for a broker"),
]
MEBIBYTES = 128
MIB = 1 << 20
FILLER = "filler"
SMALL = 3
"""The broker with the small disk."""
FREE_BYTES_SINCE = Release(3, 3)
RECORDS_OF_100_KB = {"bills": 150, "orders": 250}


@pytest.fixture
def disk(cluster: LocalCluster, moving: Moving) -> Iterator[Path]:
    """Put the data of one broker on a small disk; they are where they were after the test."""
    if moving.release < FREE_BYTES_SINCE:
        pytest.skip(f"brokers tell how much room their disks have since {FREE_BYTES_SINCE} (KIP-827)")
    folder = cluster.folder / f"broker-{SMALL}/data"
    cluster.stop_broker(SMALL)
    shutil.copytree(folder, kept := folder.with_name("kept"))
    with small_disk(folder, mebibytes=MEBIBYTES):
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        cluster.start_broker(SMALL)
        yield folder
        (folder / FILLER).unlink(missing_ok=True)
        moving.remove_all()
        cluster.stop_broker(SMALL)
        shutil.rmtree(kept)
        shutil.copytree(folder, kept)
    shutil.rmtree(folder)
    kept.rename(folder)
    cluster.start_broker(SMALL)


def leave(disk: Path, room: int) -> Path:
    """Fill the disk with a file, so that this many bytes are free."""
    filler = disk / FILLER
    free = shutil.disk_usage(disk).free
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - room)
    return filler


@pytest.mark.soak
def test_a_move_without_room_on_the_disk_of_its_target_starts_when_there_is_room(moving: Moving, disk: Path) -> None:
    moving.create({"bills": {0: (1,)}}, records=RECORDS_OF_100_KB["bills"])
    filler = leave(disk, 14 * MIB)
    moving.accept({"bills": {0: (1, SMALL)}})

    moving.step()

    assert f"bills partition 0: not started: the disk of broker {SMALL} has 14," in notes_of(moving)
    assert moving.moving() == {}
    with closing(BrokerQuestions({"bootstrap.servers": moving.cluster.bootstrap_servers})) as questions:
        told = questions.log_directories({"bills": [0]})[SMALL]
    assert isinstance(told, LogDirectories)
    assert told.free_bytes is not None
    assert told.free_bytes // 1_000_000 == 14
    filler.unlink()
    moving.until_over()
    assert moving.look().topics["bills"].assignment == {0: (1, SMALL)}
    until(lambda: moving.left() == NOTHING, timeout_s=10)


@pytest.mark.soak
def test_of_moves_that_fill_the_disk_of_their_target_the_largest_is_cancelled(moving: Moving, disk: Path) -> None:
    for topic, records in RECORDS_OF_100_KB.items():
        moving.create({topic: {0: (1,)}}, records=records)
    moving.workspace.apply_settings = {"throttle": SLOW // 5}
    moving.accept({topic: {0: (1, SMALL)} for topic in RECORDS_OF_100_KB})
    moving.step()
    until(lambda: moving.moving().keys() == RECORDS_OF_100_KB.keys())
    filler = leave(disk, 12 * MIB)

    moving.step()

    assert f"the disk of broker {SMALL} has no room for it any more" in notes_of(moving)
    until(lambda: moving.moving().keys() == {"bills"})
    filler.unlink()
    moving.workspace.apply_settings = {"throttle": 20_000_000}
    moving.until_over()
    live = moving.look()
    assert live.topics["orders"].assignment == {0: (1,)}
    assert live.topics["bills"].assignment == {0: (1, SMALL)}
    assert {end.topic: end.status for end in moving.record.ended} == {"bills": "done", "orders": "cancelled"}
    until(lambda: moving.left() == NOTHING, timeout_s=10)

"""The number of topics at the last complete snapshot is remembered by cluster."""

import os
import stat
from pathlib import Path

import pytest

from topicops.edges.home.topic_count import TopicCount
from topicops.model.errors import ArtifactError


def test_what_was_written_is_read_by_cluster(tmp_path: Path) -> None:
    memory = TopicCount(tmp_path, "Nw0Yx8fRTlqHJ0fV3k2k5A")
    assert memory.read() is None
    memory.write(40)
    memory.write(37)
    assert memory.read() == 37
    assert TopicCount(tmp_path, "another").read() is None
    assert [file.name for file in memory.path.parent.iterdir()] == ["Nw0Yx8fRTlqHJ0fV3k2k5A.json"]


def test_the_file_and_then_its_folder_are_on_the_disk_when_write_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = TopicCount(tmp_path, "a")
    memory.write(1)
    synced: list[os.stat_result] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle)))
    memory.write(2)
    file, folder = synced
    assert stat.S_ISREG(file.st_mode)
    assert os.path.samestat(file, memory.path.stat())
    assert os.path.samestat(folder, memory.path.parent.stat())


def test_a_damaged_file_stops_the_check_with_its_path(tmp_path: Path) -> None:
    memory = TopicCount(tmp_path, "a")
    memory.write(1)
    memory.path.write_text("{")
    with pytest.raises(ArtifactError, match=str(memory.path)):
        memory.read()


def test_a_file_about_another_cluster_is_not_believed(tmp_path: Path) -> None:
    memory = TopicCount(tmp_path, "a")
    memory.write(1)
    other = TopicCount(tmp_path, "b")
    other.path.write_bytes(memory.path.read_bytes())
    with pytest.raises(ArtifactError, match="another cluster"):
        other.read()


@pytest.mark.parametrize("cluster_id", ["../../escape", "a/b", "..", "\x00"])
def test_a_strange_cluster_id_stays_in_the_folder(tmp_path: Path, cluster_id: str) -> None:
    memory = TopicCount(tmp_path, cluster_id)
    memory.write(1)
    assert memory.path.resolve().parent == (tmp_path / "last-good").resolve()
    assert memory.read() == 1

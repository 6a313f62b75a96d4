"""What a run leaves for the next ones is read by environment or cluster, and a damaged file is named."""

from __future__ import annotations

import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from topicops.edges.home import memories
from topicops.edges.home.memories import (
    HOME_MARK,
    IDENTITIES,
    TOPIC_COUNT,
    Memory,
    SeenTopics,
    keep_topic_count,
    mark_of,
    read_mark,
    topic_count,
)
from topicops.model.cluster.snapshot import LastSeen
from topicops.model.errors import ArtifactError

TABLE = {name: found for name, found in vars(memories).items() if isinstance(found, Memory)}


@pytest.mark.parametrize("memory", TABLE.values(), ids=TABLE)
def test_there_is_nothing_before_the_first_run_and_a_damaged_file_is_named_and_not_taken_for_none(
    memory: Memory[object], tmp_path: Path
) -> None:
    file = memory.of(tmp_path, "local")
    assert file.read() is None
    file.path.parent.mkdir(parents=True)
    file.path.write_text("[", encoding="utf-8")
    with pytest.raises(ArtifactError, match=rf"{file.path}: cannot be read .*repair or remove it"):
        file.read()
    file.remove()
    assert file.read() is None


@pytest.mark.parametrize("memory", TABLE.values(), ids=TABLE)
@pytest.mark.parametrize("key", ["../../escape", "a/b", "..", "\x00"])
def test_a_strange_name_stays_in_the_folder(memory: Memory[object], key: str, tmp_path: Path) -> None:
    path = memory.of(tmp_path, key).path
    assert path.resolve().parent == (tmp_path / memory.folder).resolve()


def test_no_two_memories_share_a_file(tmp_path: Path) -> None:
    assert len({memory.of(tmp_path, "local").path for memory in TABLE.values()}) == len(TABLE)


def test_what_was_written_last_is_read_by_cluster_and_nothing_older(tmp_path: Path) -> None:
    file = IDENTITIES.of(tmp_path, "cluster")
    file.write({"orders": "a", "gone": "b"})
    file.write({"orders": "c"})
    assert IDENTITIES.of(tmp_path, "cluster").read() == {"orders": "c"}
    assert IDENTITIES.of(tmp_path, "another").read() is None
    assert [found.name for found in file.path.parent.iterdir()] == ["cluster.json"]


def test_the_file_and_then_its_folder_are_on_the_disk_when_write_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = TOPIC_COUNT.of(tmp_path, "a").path
    keep_topic_count(tmp_path, "a", 1)
    synced: list[os.stat_result] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle)))
    keep_topic_count(tmp_path, "a", 2)
    file, folder = synced
    assert stat.S_ISREG(file.st_mode)
    assert os.path.samestat(file, path.stat())
    assert os.path.samestat(folder, path.parent.stat())


def test_a_count_of_another_cluster_or_of_a_later_format_is_not_believed(tmp_path: Path) -> None:
    keep_topic_count(tmp_path, "a", 1)
    path = TOPIC_COUNT.of(tmp_path, "a").path
    TOPIC_COUNT.of(tmp_path, "b").path.write_bytes(path.read_bytes())
    with pytest.raises(ArtifactError, match="another cluster"):
        topic_count(tmp_path, "b")
    path.write_text(path.read_text(encoding="utf-8").replace('"1.0"', '"2.0"'), encoding="utf-8")
    with pytest.raises(ArtifactError, match="cannot be read"):
        topic_count(tmp_path, "a")


def test_a_home_keeps_the_token_that_its_first_user_gave_it(tmp_path: Path) -> None:
    assert read_mark(tmp_path / "home") is None
    token = mark_of(tmp_path / "home")
    assert len(token) == 32
    assert mark_of(tmp_path / "home") == read_mark(tmp_path / "home") == token


def test_two_folders_differ_even_at_the_same_path(tmp_path: Path) -> None:
    home = tmp_path / "home"
    token = mark_of(home)
    shutil.rmtree(home)
    assert mark_of(home) != token


def test_those_who_come_at_once_get_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(mark_of, [tmp_path] * 8))) == 1


def test_a_damaged_mark_is_named(tmp_path: Path) -> None:
    (tmp_path / HOME_MARK).write_text("{", encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"home\.json: cannot be read"):
        mark_of(tmp_path)


def seen(home: Path, environment: str = "prod", cluster_id: str = "cluster") -> SeenTopics:
    return SeenTopics(home, environment, cluster_id)


def test_nothing_is_missing_before_the_first_snapshot(tmp_path: Path) -> None:
    assert seen(tmp_path).missing(()) == {}


def test_a_topic_that_is_not_live_any_more_is_missing_with_its_identity_and_time(tmp_path: Path) -> None:
    seen(tmp_path).write([("a", "id-a"), ("b", "czxid:7")], at="2026-01-01T00:00:00Z", missed={})
    assert seen(tmp_path).missing({"a"}) == {"b": LastSeen(identity="czxid:7", at="2026-01-01T00:00:00Z")}
    assert seen(tmp_path, "other").missing(()) == {}
    assert seen(tmp_path, cluster_id="other").missing(()) == {}


def test_a_missed_topic_keeps_its_time_and_what_is_not_missed_is_forgotten(tmp_path: Path) -> None:
    memory = seen(tmp_path)
    memory.write([("a", "id-a"), ("b", "id-b")], at="2026-01-01T00:00:00Z", missed={})
    missing = memory.missing(())
    memory.write([], at="2026-01-02T00:00:00Z", missed={"b": missing["b"]})
    assert memory.missing(()) == {"b": LastSeen(identity="id-b", at="2026-01-01T00:00:00Z")}


def test_no_cluster_id_leads_out_of_the_folder(tmp_path: Path) -> None:
    seen(tmp_path, cluster_id="../../x").write([], at="2026-01-01T00:00:00Z", missed={})
    assert [path.name for path in (tmp_path / "seen/prod").iterdir()] == ["..%2F..%2Fx.txt"]


@pytest.mark.parametrize("text", ["", "another file\n", "topicops seen 1.0\na id\n", "topicops seen 1.0\na id now"])
def test_a_damaged_memory_is_named_and_not_taken_for_none(tmp_path: Path, text: str) -> None:
    memory = seen(tmp_path)
    memory.write([], at="2026-01-01T00:00:00Z", missed={})
    memory.path.write_text(text, encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"seen/prod/cluster\.txt: .*remove"):
        memory.missing(())

"""What an environment's cluster had, and when each topic was last seen."""

from pathlib import Path

import pytest

from topicops.edges.home.memories import SeenTopics
from topicops.model.cluster.snapshot import LastSeen
from topicops.model.errors import ArtifactError


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

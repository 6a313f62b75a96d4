from pathlib import Path

import pytest

from topicops.features.quality.topic_identities import TopicIdentities
from topicops.model.errors import ArtifactError


def test_there_is_nothing_to_remember_before_the_first_look(tmp_path: Path) -> None:
    assert TopicIdentities(tmp_path, "cluster").read() is None


def test_what_was_seen_last_is_remembered_and_nothing_older(tmp_path: Path) -> None:
    memory = TopicIdentities(tmp_path, "cluster")
    memory.write({"orders": "a", "gone": "b"})
    memory.write({"orders": "c"})
    assert TopicIdentities(tmp_path, "cluster").read() == {"orders": "c"}
    assert TopicIdentities(tmp_path, "another").read() is None


def test_no_cluster_id_leads_out_of_the_folder(tmp_path: Path) -> None:
    TopicIdentities(tmp_path, "../../x").write({})
    assert [path.name for path in (tmp_path / "identities").iterdir()] == ["..%2F..%2Fx.json"]


def test_a_damaged_memory_is_named_and_not_taken_for_none(tmp_path: Path) -> None:
    memory = TopicIdentities(tmp_path, "cluster")
    memory.write({})
    memory.path.write_text("[", encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"identities/cluster\.json: cannot be read .*repair or remove it"):
        memory.read()

"""``topicops init`` on real clusters: after it, each command that it prints works as printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import NewTopic

from fixtures.live import create_topics, new_admin, remove_topics
from topicops import cli
from topicops.features.files.authoring.first_environment import FIRST_TOPICS
from topicops_local.cluster import LocalCluster


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOPICOPS_HOME", raising=False)
    return tmp_path


@pytest.fixture
def no_topic_stays(local_cluster: LocalCluster) -> Iterator[None]:
    yield
    remove_topics(local_cluster, [*FIRST_TOPICS, "init-live"])


def printed_commands(text: str) -> list[list[str]]:
    """Return the words of each command below ``Next:``."""
    after = text.partition("Next:\n")[2]
    return [shlex.split(line, comments=True)[1:] for line in re.findall(r"^  (topicops .*)$", after, re.MULTILINE)]


def follow(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, int]]:
    """Type what `init` printed; each command with its exit status."""
    commands = printed_commands(capsys.readouterr().out)
    return [(words[0], cli.run(words)) for words in commands]


ALL_WELL = [(name, 0) for name in ("doctor", "import", "plan", "new", "plan", "apply")]


@pytest.mark.usefixtures("here", "no_topic_stays")
def test_after_init_each_printed_command_works_up_to_the_first_own_topic(
    local_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topics(local_cluster.bootstrap_servers, NewTopic("init-live", 2, 3), NewTopic(FIRST_TOPICS[0], 1, 3))

    assert cli.run(["init", "--zookeeper", str(local_cluster.zookeeper_hosts), "--name", "prod", "--owner", "me"]) == 0
    cluster = yaml.safe_load(Path("topics/environments/prod.yaml").read_text(encoding="utf-8"))["spec"]["cluster"]
    ended = follow(capsys)

    assert (cluster["id"], cluster["class"], cluster["kafkaVersion"]) == (local_cluster.cluster_id, "production", "3.9")
    assert set(cluster["kafka"]["bootstrapServers"].split(",")) == set(local_cluster.bootstrap_servers.split(","))
    shown = capsys.readouterr().out
    assert ended == ALL_WELL, shown
    assert "No changes." in shown
    assert "Applied and verified: 1 done." in shown
    assert Path("topics/other/init-live.yaml").is_file()
    assert Path(f"topics/other/{FIRST_TOPICS[1]}.yaml").is_file()  # somebody has made the first already

    again = ["init", "--zookeeper", str(local_cluster.zookeeper_hosts), "--name"]
    assert cli.run([*again, "second"]) == 0
    assert "# no changes yet" in capsys.readouterr().out
    assert cli.run(["new", "init-absent", "--owner", "me", "--partitions", "1"]) == 0
    assert cli.run([*again, "third"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"1 of \d+ described topics is not in this cluster: the first plan would create it", shown)
    assert "# would create 1 topic" in shown


@pytest.mark.soak
@pytest.mark.usefixtures("here")
def test_a_cluster_with_kraft_is_read_through_its_brokers(
    kraft_cluster: LocalCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(kraft_cluster.home))

    assert cli.run(["init", "--local"]) == 0
    spec = yaml.safe_load(Path("topics/environments/local.yaml").read_text(encoding="utf-8"))["spec"]["cluster"]
    ended = follow(capsys)
    admin = new_admin(kraft_cluster.bootstrap_servers)
    for future in admin.delete_topics([FIRST_TOPICS[0]]).values():
        future.result(30)

    assert (spec["class"], spec["source"], spec["lease"], "zookeeper" in spec) == ("sandbox", "kafka", "file", False)
    assert ended == ALL_WELL


@pytest.mark.soak
@pytest.mark.usefixtures("here")
def test_addresses_of_two_clusters_are_refused_and_nothing_is_written(
    local_cluster: LocalCluster, kraft_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--zookeeper", str(local_cluster.zookeeper_hosts), "--bootstrap-servers", kraft_cluster.bootstrap_servers]

    assert cli.run(["init", *words, "--name", "prod"]) == 8

    assert "correct one of the two addresses" in capsys.readouterr().err
    assert list(Path().iterdir()) == []

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from topicops.model.errors import LocalClusterError, UsageError
from topicops.model.release import NEWEST, NO_ZOOKEEPER, OLDEST
from topicops_local import jars as subject
from topicops_local.cluster import LocalCluster

CONTENT = b"a jar"
PATH = "org/apache/kafka/kafka/1.0/kafka.jar"
SUMS = {PATH: hashlib.sha256(CONTENT).hexdigest()}


class Mirror(ThreadingHTTPServer):
    """A Maven repository on loopback that serves a folder and notes what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        self.folder = folder
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/maven2"

    def put(self, content: bytes, path: str = PATH) -> None:
        jar = self.folder / "maven2" / path
        jar.parent.mkdir(parents=True, exist_ok=True)
        jar.write_bytes(content)


class _Handler(SimpleHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """The repository that ``TOPICOPS_MAVEN_URL`` names; a failed download is not tried again."""
    server = Mirror(tmp_path / "repository")
    server.put(CONTENT)
    monkeypatch.setenv("TOPICOPS_MAVEN_URL", server.url)
    monkeypatch.setattr(subject, "_RETRIES", 0)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_jar_in_the_cache_with_a_wrong_sum_is_refused_by_name_with_both_sums(tmp_path: Path) -> None:
    folder = tmp_path / "kafka-3.9.2"
    folder.mkdir()
    (folder / "kafka.jar").write_bytes(b"tampered")
    with pytest.raises(LocalClusterError) as error:
        subject.kafka_jars(cache=tmp_path, sums=SUMS)
    message = str(error.value)
    assert str(folder / "kafka.jar") in message
    assert hashlib.sha256(b"tampered").hexdigest() in message
    assert SUMS[PATH] in message
    assert f"delete {folder} and run again" in message


@pytest.mark.parametrize(
    "content", [pytest.param(b"something else", id="another"), pytest.param(CONTENT[:-1], id="half")]
)
def test_a_fetched_jar_with_a_wrong_sum_never_reaches_the_cache(mirror: Mirror, tmp_path: Path, content: bytes) -> None:
    mirror.put(content)
    found = hashlib.sha256(content).hexdigest()
    with pytest.raises(LocalClusterError, match=f"does not match .*{SUMS[PATH]} but got {found}"):
        subject.kafka_jars(cache=tmp_path / "cache", sums=SUMS)
    assert list((tmp_path / "cache" / "kafka-3.9.2").iterdir()) == []


def test_jars_are_fetched_once_and_then_come_from_the_cache(mirror: Mirror, tmp_path: Path) -> None:
    progress: list[str] = []
    for _ in range(2):
        [jar] = subject.kafka_jars(cache=tmp_path / "cache", sums=SUMS, progress=progress.append)
    assert jar.read_bytes() == CONTENT
    assert mirror.asked == [f"/maven2/{PATH}"]
    assert progress == ["fetching Kafka 3.9.2 from 127.0.0.1: 1 jars to go"]


def test_two_that_need_the_jars_at_once_fetch_them_once(mirror: Mirror, tmp_path: Path) -> None:
    found: list[tuple[Path, ...]] = []

    def fetch() -> None:
        found.append(subject.kafka_jars(cache=tmp_path / "cache", sums=SUMS))

    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [(tmp_path / "cache" / "kafka-3.9.2" / "kafka.jar",)] * 3
    assert len(mirror.asked) == 1


def test_a_repository_without_the_jar_is_named_without_its_password(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mirror.folder / "maven2" / PATH).unlink()
    monkeypatch.setenv("TOPICOPS_MAVEN_URL", mirror.url.replace("//", "//user:word@"))
    with pytest.raises(LocalClusterError) as error:
        subject.kafka_jars(cache=tmp_path / "cache", sums=SUMS)
    message = str(error.value)
    assert message.startswith("Kafka 3.9.2 from 127.0.0.1 could not be fetched: 404")
    assert "word" not in message
    assert "TOPICOPS_MAVEN_URL" in message


def test_a_mirror_that_does_not_answer_is_named(mirror: Mirror, tmp_path: Path) -> None:
    mirror.shutdown()
    mirror.server_close()
    with pytest.raises(LocalClusterError, match=r"(?s)could not be fetched: .*refused.*TOPICOPS_MAVEN_URL"):
        subject.kafka_jars(cache=tmp_path / "cache", sums=SUMS)


def test_the_pinned_jars_are_those_of_the_broker_its_tools_and_its_log() -> None:
    names = {Path(path).name for path in subject.pinned_sums("3.9.2")}
    assert {"kafka_2.13-3.9.2.jar", "kafka-tools-3.9.2.jar", "zookeeper-3.8.4.jar"} <= names
    assert {"slf4j-reload4j-1.7.36.jar", "reload4j-1.2.19.jar"} <= names
    assert len(names) == 58


def test_each_supported_release_is_pinned_once_with_its_broker_a_log_and_a_zookeeper_if_it_needs_one() -> None:
    versions = subject.pinned_versions()
    assert (min(versions), max(versions)) == (OLDEST, NEWEST)
    for release, version in versions.items():
        names = {Path(path).name.rpartition("-")[0] for path in subject.pinned_sums(version)}
        assert {"kafka-clients", "slf4j-api"} <= names
        assert names & {"kafka_2.12", "kafka_2.13"}
        assert ("zookeeper" in names, "log4j-slf4j-impl" in names) == (release < NO_ZOOKEEPER, release >= NO_ZOOKEEPER)


def test_another_patch_version_has_kafkas_own_jars_with_the_sums_beside_them(mirror: Mirror, tmp_path: Path) -> None:
    pinned = subject.pinned_sums("2.8.2")
    own = [path.replace("2.8.2", "2.8.1") for path in pinned if "/kafka/" in path]
    for path in own:
        mirror.put(hashlib.sha1(path.encode()).hexdigest().encode(), f"{path}.sha1")
        mirror.put(path.encode(), path)
    said: list[str] = []

    with pytest.raises(LocalClusterError, match="404"):  # the mirror has Kafka's own jars alone
        subject.kafka_jars("2.8.1", cache=tmp_path / "cache", progress=said.append)
    sums = subject.sums_of("2.8.1", cache=tmp_path / "cache")

    assert "warning: Kafka 2.8.1 is not pinned, 2.8.2 is" in said[0]
    assert {path: digest for path, digest in sums.items() if path not in own} == {
        path: digest for path, digest in pinned.items() if "/kafka/" not in path
    }
    assert {sums[path] for path in own} == {f"sha1:{hashlib.sha1(path.encode()).hexdigest()}" for path in own}
    assert mirror.asked.count(f"/maven2/{own[0]}.sha1") == 1


def test_a_version_that_was_never_released_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no Kafka 2\.8\.9 in 127\.0\.0\.1; 2\.8\.2 is pinned"):
        subject.kafka_jars("2.8.9", cache=tmp_path / "cache")


def test_a_cluster_of_a_version_that_was_never_released_leaves_nothing_behind(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UsageError, match=r"there is no Kafka 2\.8\.9"):
        LocalCluster.up(tmp_path / "home", kafka="2.8.9")
    assert not (tmp_path / "home").exists()

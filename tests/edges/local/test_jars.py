import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from topicops.edges.local import jars as subject
from topicops.model.errors import LocalClusterError

CONTENT = b"a jar"
SUMS = {"kafka.jar": hashlib.sha256(CONTENT).hexdigest()}


@pytest.fixture
def make_java(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a `java` that says it is of that version, and does with other arguments what the script says."""

    def make(version: str, script: str = "exit 3") -> Path:
        java = tmp_path / f"java-{version}" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(
            f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; exit; fi\n{script}\n'
        )
        java.chmod(0o755)
        return java

    return make


def fake_ivy(log: Path, content: str = CONTENT.decode()) -> str:
    """A script that notes its arguments in ``log`` and puts one jar where `-retrieve` (always the last) says."""
    return (
        f'echo "$@" >> {log}\nfor last; do :; done\nmkdir -p "$(dirname "$last")"\n'
        f'sleep 0.3\nprintf %s "{content}" > "$(dirname "$last")/kafka.jar"'
    )


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2", "17", "21-ea"])
def test_java_17_and_21_are_taken(make_java: Callable[..., Path], version: str) -> None:
    java = make_java(version)
    assert subject.find_java({"JAVA_HOME": str(java.parent.parent), "PATH": ""}) == java


@pytest.mark.parametrize(("version", "named"), [("25.0.1", "Java 25"), ("11.0.2", "Java 11"), ("1.8.0_402", "Java 8")])
def test_another_java_is_refused_in_one_line_that_says_what_to_install(
    make_java: Callable[..., Path], version: str, named: str
) -> None:
    java = make_java(version)
    with pytest.raises(LocalClusterError) as error:
        subject.find_java({"PATH": str(java.parent)})
    message = str(error.value)
    assert message.startswith("Java 17 or 21 is needed")
    assert f"{java} is {named}" in message
    assert "install openjdk-17-jre-headless" in message
    assert "\n" not in message


def test_no_java_at_all_is_said_so() -> None:
    with pytest.raises(LocalClusterError, match="there is no java in JAVA_HOME or PATH: install"):
        subject.find_java({"PATH": "/nowhere"})


def test_java_home_comes_before_the_path(make_java: Callable[..., Path]) -> None:
    home, path = make_java("17.0.1"), make_java("21.0.1")
    assert subject.find_java({"JAVA_HOME": str(home.parent.parent), "PATH": str(path.parent)}) == home


def test_a_java_on_the_path_serves_where_java_home_has_a_wrong_one(make_java: Callable[..., Path]) -> None:
    home, path = make_java("25.0.1"), make_java("21.0.1")
    assert subject.find_java({"JAVA_HOME": str(home.parent.parent), "PATH": str(path.parent)}) == path


def test_a_jar_in_the_cache_with_a_wrong_sum_is_refused_by_name_with_both_sums(tmp_path: Path) -> None:
    folder = tmp_path / "kafka-3.9.2"
    folder.mkdir()
    (folder / "kafka.jar").write_bytes(b"tampered")
    with pytest.raises(LocalClusterError) as error:
        subject.kafka_jars(cache=tmp_path, sums=SUMS)
    message = str(error.value)
    assert str(folder / "kafka.jar") in message
    assert hashlib.sha256(b"tampered").hexdigest() in message
    assert SUMS["kafka.jar"] in message
    assert f"delete {folder} and run again" in message


def test_a_fetched_jar_with_a_wrong_sum_never_reaches_the_cache(make_java: Callable[..., Path], tmp_path: Path) -> None:
    java = make_java("17", fake_ivy(tmp_path / "log", content="something else"))
    with pytest.raises(LocalClusterError, match=r"SHA-256 is .*, pinned is .*ask whoever runs the mirror"):
        subject.kafka_jars(java=java, cache=tmp_path / "cache", sums=SUMS)
    assert not (tmp_path / "cache" / "kafka-3.9.2" / "kafka.jar").exists()


def test_jars_are_fetched_once_and_then_come_from_the_cache(make_java: Callable[..., Path], tmp_path: Path) -> None:
    java = make_java("17", fake_ivy(tmp_path / "log"))
    said: list[str] = []
    for _ in range(2):
        [jar] = subject.kafka_jars(java=java, cache=tmp_path / "cache", sums=SUMS, progress=said.append)
    assert jar.read_bytes() == CONTENT
    assert len((tmp_path / "log").read_text().splitlines()) == 1
    assert said == ["fetching Kafka 3.9.2: 0 descriptors, 0 of 1 jars"]


def test_two_that_need_the_jars_at_once_fetch_them_once(make_java: Callable[..., Path], tmp_path: Path) -> None:
    java = make_java("17", fake_ivy(tmp_path / "log"))
    found: list[tuple[Path, ...]] = []

    def fetch() -> None:
        found.append(subject.kafka_jars(java=java, cache=tmp_path / "cache", sums=SUMS))

    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [(tmp_path / "cache" / "kafka-3.9.2" / "kafka.jar",)] * 3
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_a_mirror_is_asked_through_its_ivy_settings(
    make_java: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "mirror.xml"
    settings.write_text("<ivysettings/>")
    monkeypatch.setenv("TOPICOPS_IVY_SETTINGS", str(settings))
    java = make_java("17", fake_ivy(tmp_path / "log"))
    subject.kafka_jars(java=java, cache=tmp_path / "cache", sums=SUMS)
    assert f"-settings {settings}" in (tmp_path / "log").read_text()


def test_settings_that_are_not_there_are_named(make_java: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(LocalClusterError, match=r"mirror\.xml: no such Ivy settings file"):
        subject.kafka_jars(
            java=make_java("17"), cache=tmp_path / "cache", sums=SUMS, ivy_settings=tmp_path / "mirror.xml"
        )


def test_a_failing_ivy_is_shown_with_the_end_of_its_log(make_java: Callable[..., Path], tmp_path: Path) -> None:
    java = make_java("17", "echo '..... (12kB)'; echo 'Server access error'; exit 1")
    with pytest.raises(LocalClusterError) as error:
        subject.kafka_jars(java=java, cache=tmp_path / "cache", sums=SUMS)
    message = str(error.value)
    assert "Server access error" in message
    assert "12kB" not in message
    assert str(tmp_path / "cache" / "kafka-3.9.2-ivy.log") in message
    assert "TOPICOPS_IVY_SETTINGS" in message


def test_the_pinned_jars_are_those_of_the_broker_its_tools_and_its_log() -> None:
    names = set(subject.pinned_sums())
    assert {"kafka_2.13-3.9.2.jar", "kafka-tools-3.9.2.jar", "zookeeper-3.8.4.jar"} <= names
    assert {"slf4j-reload4j-1.7.36.jar", "reload4j-1.2.19.jar"} <= names
    assert len(names) == 58


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TOPICOPS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert subject.default_cache() == tmp_path / "topicops"
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "own"))
    assert subject.default_cache() == tmp_path / "own"

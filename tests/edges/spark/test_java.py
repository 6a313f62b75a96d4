import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from topicops.features.shared import java as subject
from topicops.features.shared.java import default_cache, last_lines
from topicops.features.spark.edges import driver
from topicops.features.spark.edges.causes import reason_of
from topicops.features.spark.engine import SPARK
from topicops.model.errors import LocalClusterError
from topicops_local import jars, server_files


@pytest.fixture
def make_java(tmp_path: Path) -> Callable[[str], Path]:
    """Write a `java` that prints that version and runs nothing."""

    def make(version: str) -> Path:
        java = tmp_path / f"java-{version}" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
        return java

    return make


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2", "17", "21-ea"])
def test_java_17_and_21_are_taken(make_java: Callable[[str], Path], version: str) -> None:
    java = make_java(version)
    assert subject.find_java({"JAVA_HOME": str(java.parent.parent), "PATH": ""}) == java


def test_java_25_is_taken_where_what_runs_on_it_takes_it(make_java: Callable[[str], Path]) -> None:
    java = make_java("25.0.3")
    environ = {"JAVA_HOME": str(java.parent.parent), "PATH": ""}
    assert subject.find_java(environ, newest=25) == java
    with pytest.raises(LocalClusterError, match=r"Java 17 or 21 is needed, and .* is Java 25"):
        subject.find_java(environ)
    with pytest.raises(LocalClusterError, match=r"Java 17, 21 or 25 is needed, and .* is Java 26"):
        subject.find_java({"PATH": str(make_java("26").parent)}, newest=25)


@pytest.mark.parametrize(
    ("spark", "newest"),
    [("4.0.4", 21), ("4.1.3", 21), ("4.2.0", 25), ("4.3.0", 25), ("4.10.0.dev1", 25), ("5.0.0", 25)],
)
def test_spark_takes_java_25_since_4_2(spark: str, newest: int) -> None:
    assert driver.newest_java(spark) == newest


@pytest.mark.parametrize(
    ("kafka", "newest"), [("2.8.2", 21), ("3.9.2", 21), ("4.0.2", 25), ("4.4.0", 25), ("10.0.0", 25)]
)
def test_kafka_takes_java_25_since_4_0(kafka: str, newest: int) -> None:
    assert jars.newest_java(kafka) == newest


def test_without_jars_only_the_client_of_spark_connect_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark/__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    with pytest.raises(
        LocalClusterError, match=r"pyspark-client.* name a Connect server in TOPICOPS_SPARK, or run pip"
    ):
        subject.pyspark_jars()
    monkeypatch.delenv("TOPICOPS_SPARK", raising=False)
    assert not SPARK.is_installed
    monkeypatch.setenv("TOPICOPS_SPARK", "sc://spark:15002")
    assert SPARK.is_installed


@pytest.mark.parametrize(("version", "named"), [("25.0.1", "Java 25"), ("11.0.2", "Java 11"), ("1.8.0_402", "Java 8")])
def test_another_java_is_refused_in_one_line_that_says_what_to_install(
    make_java: Callable[[str], Path], version: str, named: str
) -> None:
    java = make_java(version)
    with pytest.raises(LocalClusterError) as error:
        subject.find_java({"PATH": str(java.parent)})
    message = str(error.value)
    assert message.startswith("Java 17 or 21 is needed")
    assert f"{java} is {named}" in message
    assert "install openjdk-21-jre-headless" in message
    assert "\n" not in message


def test_no_java_at_all_is_said_so() -> None:
    with pytest.raises(LocalClusterError, match="there is no java in JAVA_HOME or PATH: install"):
        subject.find_java({"PATH": "/nowhere"})


def test_java_home_comes_before_the_path(make_java: Callable[[str], Path]) -> None:
    home, path = make_java("17.0.1"), make_java("21.0.1")
    assert subject.find_java({"JAVA_HOME": str(home.parent.parent), "PATH": str(path.parent)}) == home


def test_a_java_on_the_path_serves_where_java_home_has_a_wrong_one_with_a_word(
    make_java: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    home, path = make_java("25.0.1"), make_java("21.0.1")
    assert subject.find_java({"JAVA_HOME": str(home.parent.parent), "PATH": str(path.parent)}) == path
    assert caplog.messages == [f"JAVA_HOME is not used, because {home} is Java 25; {path} is used"]


DAY_S = 24 * 3600


def an_archive(file: Path, *, unused_days: int) -> Path:
    file.touch()
    os.utime(file, times=(time.time() - unused_days * DAY_S,) * 2)
    return file


def test_a_new_archive_takes_the_place_of_those_of_its_kind_that_nobody_used_for_a_month(tmp_path: Path) -> None:
    old = [an_archive(tmp_path / name, unused_days=31) for name in ("spark-4.1.0-a.jsa", "spark-4.2.0-b.jsa")]
    recent = an_archive(tmp_path / "spark-4.1.0-c.jsa", unused_days=29)
    others = [an_archive(tmp_path / name, unused_days=31) for name in ("kafka-d.jsa", "spark-4.1.0-e.txt")]
    in_use = an_archive(tmp_path / "spark-4.1.0-f.jsa", unused_days=31)
    assert subject.mark_used(in_use)

    new = subject.created_archive("Spark", lambda: tmp_path / "spark-4.3.0-g.jsa", Path.touch)

    assert new is not None
    assert set(tmp_path.iterdir()) == {new, recent, in_use, *others}
    assert not any(file.exists() for file in old)


def test_while_the_archive_fits_nothing_is_removed(tmp_path: Path) -> None:
    files = {an_archive(tmp_path / name, unused_days=31) for name in ("kafka-a.jsa", "kafka-b.jsa")}
    assert subject.created_archive("Kafka", lambda: tmp_path / "kafka-a.jsa", Path.touch) == tmp_path / "kafka-a.jsa"
    assert set(tmp_path.iterdir()) == files


def test_a_server_that_starts_from_the_archive_counts_as_its_use(
    tmp_path: Path, make_java: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path))
    java, before = make_java("17"), time.time() - DAY_S
    archive = server_files.class_archive(java, [])
    assert not subject.mark_used(archive)
    an_archive(archive, unused_days=31)

    command = server_files.zookeeper_command(java, [], tmp_path / "zookeeper.properties")

    assert f"-XX:SharedArchiveFile={archive}" in command
    assert archive.stat().st_mtime > before


@pytest.mark.parametrize(
    "library", ["libzstd-jni-1.5.7-78337541700206520871.so", "snappy-1.1.10-0f0a-libsnappyjava.so"]
)
def test_a_library_that_may_not_run_from_the_folder_for_temporary_files_names_tmpdir(
    tmp_path: Path, library: str
) -> None:
    log = tmp_path / "driver.log"
    place = f"/tmp/topicops-spark-24b8jc3e/{library}"
    log.write_text(
        f"java.lang.UnsatisfiedLinkError: {place}: {place}: failed to map segment from shared object\n", "utf-8"
    )

    assert "mounted noexec: set TMPDIR to another" in last_lines(log)
    assert "mounted noexec: set TMPDIR to another" in reason_of(RuntimeError(log.read_text("utf-8")))


def test_servers_unpack_their_libraries_where_tmpdir_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    java, jar = tmp_path / "java", tmp_path / "a.jar"
    java.touch()
    jar.touch()

    command = server_files.zookeeper_command(java, [jar], tmp_path / "zoo.cfg")

    assert f"-Djava.io.tmpdir={tmp_path}" in command


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TOPICOPS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "topicops"
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "own"))
    assert default_cache() == tmp_path / "own"

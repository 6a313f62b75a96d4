import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from topicops.edges.java import find_java
from topicops.edges.spark import session as module
from topicops.edges.spark.class_archive import train_archive
from topicops.edges.spark.driver import archive_path, driver_java
from topicops.edges.spark.session import SparkKind, spark_kind, spark_session
from topicops.model.errors import TopicopsError, UsageError

IN_ITS_OWN_PROCESS = """
import logging, signal, sys, warnings
from topicops.edges.spark.driver import local_driver, uses_archive
from topicops.edges.spark.session import spark_session
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
own_handler = signal.getsignal(signal.SIGINT)
with spark_session("local[2]") as spark:
    counted = spark.range(5).count()
with spark_session("local[2]") as spark:
    counted += spark.range(5).count()
print(counted, uses_archive(), signal.getsignal(signal.SIGINT) is own_handler, local_driver().folder)
"""


def run_alone(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", IN_ITS_OWN_PROCESS],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("local", "local"),
        ("local[*]", "local"),
        ("local[2]", "local"),
        ("local-cluster[2,1,1024]", "cluster"),
        ("spark://master:7077", "cluster"),
        ("yarn", "cluster"),
        ("k8s://https://api:6443", "cluster"),
        ("sc://spark:15002/;token=x", "connect"),
    ],
)
def test_the_setting_names_where_spark_runs(setting: str, kind: SparkKind) -> None:
    assert spark_kind(setting) == kind


@pytest.mark.parametrize("setting", ["local[]", "local[two]", "spark", "mesos://old:5050", "sc://"])
def test_another_setting_is_refused_even_while_a_session_runs(spark: SparkSession, setting: str) -> None:
    with pytest.raises(UsageError, match=r"TOPICOPS_SPARK=.*: write local\[\*\]"), spark_session(setting):
        pass


def test_a_local_session_is_in_utc_on_loopback_and_without_a_ui(spark: SparkSession) -> None:
    wanted = {
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "2",
    }
    assert {name: spark.conf.get(name) for name in wanted} == wanted


def test_a_running_session_is_lent_out_and_left_running(spark: SparkSession) -> None:
    with spark_session() as lent:
        assert lent.conf.get("spark.app.id") == spark.conf.get("spark.app.id")
    assert spark.range(3).count() == 3


@pytest.mark.soak
def test_a_damaged_archive_is_removed_and_the_process_stays_quiet_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path))
    archive_path(find_java()).write_bytes(b"no archive")

    ended = run_alone()

    assert ended.stderr == ""
    reported, result = ended.stdout.splitlines()
    assert reported.startswith(f"Spark's driver did not start from its class-data archive {tmp_path}/spark-")
    counted, uses_archive, has_own_handler, folder = result.split()
    assert (counted, uses_archive, has_own_handler) == ("10", "False", "True")
    assert not Path(folder).exists()
    assert list(tmp_path.iterdir()) == []


def test_a_local_driver_takes_no_setting_of_another_spark_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "spark-env.sh").write_text("exit 7\n")
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraClassPath /tmp\n")
    elsewhere = dict.fromkeys(("SPARK_CONF_DIR", "SPARK_HOME", "HADOOP_CONF_DIR"), str(tmp_path))

    ended = run_alone(**elsewhere, PYSPARK_GATEWAY_PORT="1", SPARK_SUBMIT_OPTS="-no-such-flag")

    assert ended.stderr == ""
    assert ended.stdout.startswith("10 True True ")  # and its class path still fits the archive


def test_a_java_process_that_ends_at_once_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && exec {find_java().resolve()} -version\necho no memory >&2\nexit 7\n'
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)

    ended = run_alone(JAVA_HOME=str(tmp_path / "jdk"), TOPICOPS_CACHE=str(tmp_path))

    assert ended.returncode == 1
    assert "TopicopsError: Spark could not be started; the end of its log:\n  no memory\n" in ended.stderr


def test_without_a_fitting_java_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TopicopsError, match="Java 17 or 21 is needed, and there is no java"):
        driver_java()


def test_a_connect_server_that_does_not_answer_is_told_at_once() -> None:
    with pytest.raises(
        TopicopsError, match=r"^TOPICOPS_SPARK=sc://127.0.0.1:1: no server answers there .*; start the server"
    ):
        module._connect("sc://127.0.0.1:1")


def test_where_no_archive_can_be_kept_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "file"))
    assert train_archive() is None


@pytest.mark.soak
def test_a_trained_archive_is_used_by_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path))
    archive = train_archive()
    assert archive is not None
    assert list(tmp_path.iterdir()) == [archive]
    assert run_alone(TOPICOPS_CACHE=str(tmp_path)).stdout.startswith("10 True ")

import errno
import os
import socket
import stat
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from topicops.edges.connections.lookup import from_environment
from topicops.edges.threads import run_in_thread
from topicops.features.shared.java import find_java, pyspark_jars
from topicops.features.spark.edges import causes, driver
from topicops.features.spark.edges import session as module
from topicops.features.spark.edges.causes import spark_errors
from topicops.features.spark.edges.class_archive import train_archive
from topicops.features.spark.edges.driver import (
    archive_path,
    awaited,
    driver_java,
    local_driver,
    local_options,
    small_home,
)
from topicops.features.spark.edges.session import spark_session, spark_step
from topicops.features.spark.settings import spark_place
from topicops.flow.runs.run import no_progress
from topicops.model.errors import TopicopsError, UsageError

IN_ITS_OWN_PROCESS = """
import logging, signal, sys, warnings
from topicops.features.spark.edges.driver import local_driver
from topicops.features.spark.edges.session import spark_session
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
own_handler = signal.getsignal(signal.SIGINT)
with spark_session("local[2]") as spark:
    counted = spark.range(5).count()
with spark_session("local[2]") as spark:
    counted += spark.range(5).count()
folder = local_driver().folder
log = folder / "archive.log"
uses_archive = log.is_file() and "Mapped dynamic region" in log.read_text()
print(counted, uses_archive, signal.getsignal(signal.SIGINT) is own_handler, folder)
"""

ITS_ENVIRONMENT = """
import os, time
from topicops.edges.threads import run_in_thread
from topicops.features.spark.edges.driver import local_driver
before, seen = dict(os.environ), set()
start = run_in_thread(local_driver)
while not start.done():
    now = dict(os.environ)
    seen |= {name for name in {*before, *now} if now.get(name) != before.get(name)}
    time.sleep(0.001)
start.result()
print(all(name.startswith("PYSPARK_GATEWAY_") for name in seen), dict(os.environ) == before)
"""

IN_ONE_APPLICATION = """
from topicops.features.spark.edges.session import spark_application, spark_session
with spark_application():
    with spark_session() as first:
        one = first.sparkContext.applicationId
    with spark_session() as second:
        print(second.sparkContext.applicationId == one, second.range(5).count())
with spark_application():
    pass
with spark_session() as third:
    print(third.sparkContext.applicationId != one, third.range(5).count())
"""


def run_alone(program: str = IN_ITS_OWN_PROCESS, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("setting", ["local[]", "local[two]", "spark", "mesos://old:5050", "sc://"])
def test_another_setting_is_refused_even_while_a_session_runs(spark: SparkSession, setting: str) -> None:
    with pytest.raises(UsageError, match=r"TOPICOPS_SPARK=.*: write local\[\*\]"), spark_session(setting):
        pass


def test_a_local_session_is_in_utc_on_loopback_and_without_a_ui(spark: SparkSession) -> None:
    wanted = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
    }
    assert {name: spark.conf.get(name) for name in wanted} == wanted


def test_the_driver_has_all_jars_of_spark_but_the_one_of_machine_learning(spark: SparkSession) -> None:
    of_spark = {jar.name for jar in pyspark_jars().glob("*.jar")}
    found = {Path(jar).name for jar in spark._jvm.java.lang.System.getProperty("java.class.path").split(":")}
    assert of_spark - found == {jar for jar in of_spark if jar.startswith("spark-mllib_")} != set()


def test_where_no_links_can_be_made_spark_starts_from_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file, and no folder")
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "cache"))
    assert small_home(find_java()) == pyspark_jars().parent


def test_a_driver_tells_which_settings_it_knows(spark: SparkSession) -> None:
    assert spark.range(1).count() == 1
    good = {"spark.executor.memory", "spark.sql.files.maxPartitionBytes"}
    assert module._known_settings(local_driver(), good) == good
    known = module._known_settings(local_driver(), {*good, "spark.sql.sesion.timeZone"})
    assert known >= {*good, "spark.sql.session.timeZone", "spark.sql.catalogImplementation"}
    assert "spark.sql.sesion.timeZone" not in known


def test_a_running_session_is_lent_out_and_left_running(spark: SparkSession) -> None:
    with spark_session() as lent:
        assert lent.conf.get("spark.app.id") == spark.conf.get("spark.app.id")
    assert spark.range(3).count() == 3


@pytest.mark.soak
def test_a_damaged_archive_is_removed_and_the_process_stays_quiet_and_leaves_only_its_links_behind(
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
    assert list(tmp_path.iterdir()) == [small_home(find_java())]


ON_A_FULL_HOST = """
import os
from topicops.features.spark.edges.session import spark_session
before = dict(os.environ)
with spark_session("local[2]") as spark:
    heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory() >> 20
    zone, master = spark.conf.get("spark.sql.session.timeZone"), spark.sparkContext.master
    print(spark.range(5).count(), 900 < heap <= 1024, zone, master, type(spark).__module__)
print(dict(os.environ) == before)
"""
OF_THE_HOST = {
    "SPARK_REMOTE": "sc://nowhere",
    "MASTER": "yarn",
    "SPARK_CONNECT_MODE_ENABLED": "1",
    "SPARK_CONNECT_MODE": "1",
    "SPARK_API_MODE": "connect",
    "SPARK_TESTING": "1",
    "SPARK_LOCAL_DIRS": "/proc/none",
    "SPARK_LOCAL_HOSTNAME": "nowhere.invalid",
    "SPARK_HOME": "FOLDER",
    "SPARK_CONF_DIR": "FOLDER",
    "SPARK_SUBMIT_OPTS": "-no-such-flag",
    "SPARK_DIST_CLASSPATH": "FOLDER/no.jar",
    "SPARK_PREPEND_CLASSES": "1",
    "SPARK_LOG_SCHEMA": "none",
    "PYSPARK_SUBMIT_ARGS": "--master yarn",
    "PYSPARK_GATEWAY_PORT": "1",
    "PYSPARK_PIN_THREAD": "false",
    "HADOOP_CONF_DIR": "FOLDER",
    "HADOOP_USER_NAME": "nobody",
    "YARN_CONF_DIR": "FOLDER",
    "CLASSPATH": "FOLDER",
    "JDK_JAVA_OPTIONS": "-Xmx64m",
    "_JAVA_OPTIONS": "-Xmx64m",
}
"""Variables of a host that a local engine must not heed, each with a value that would break or change it."""


def on_a_full_host(folder: Path, names: Iterable[str]) -> subprocess.CompletedProcess[str]:
    (folder / "spark-env.sh").write_text("exit 7\n")
    (folder / "spark-defaults.conf").write_text("spark.master yarn\nspark.plugins no.such.Plugin\n")
    (folder / "core-site.xml").write_text("<no xml")
    return run_alone(ON_A_FULL_HOST, **{name: OF_THE_HOST[name].replace("FOLDER", str(folder)) for name in names})


UNTOUCHED = "5 True UTC local[2] pyspark.sql.session\nTrue\n"


def test_a_local_engine_heeds_no_variable_and_no_file_of_another_spark(tmp_path: Path) -> None:
    ended = on_a_full_host(tmp_path, OF_THE_HOST)
    assert ended.stdout == UNTOUCHED, ended.stderr


@pytest.mark.soak
@pytest.mark.parametrize("name", OF_THE_HOST)
def test_a_local_engine_does_not_heed(name: str, tmp_path: Path) -> None:
    ended = on_a_full_host(tmp_path, [name])
    assert ended.stdout == UNTOUCHED, ended.stderr


@pytest.mark.soak
def test_with_another_spark_on_the_machine_the_archive_still_fits(tmp_path: Path) -> None:
    elsewhere = dict.fromkeys(("SPARK_CONF_DIR", "SPARK_HOME", "HADOOP_CONF_DIR"), str(tmp_path))

    before = time.time()
    ended = run_alone(**elsewhere)

    assert ended.stderr == ""
    assert ended.stdout.startswith("10 True True ")
    assert archive_path(find_java()).stat().st_mtime > before  # that of its last use


def test_the_start_of_a_driver_leaves_the_environment_of_the_process_to_other_threads() -> None:
    assert run_alone(ITS_ENVIRONMENT, PYSPARK_GATEWAY_PORT="1").stdout == "True True\n"


def own_java(folder: Path, does: str) -> Path:
    """Return a script that shows a fitting version, and does what it is told when a driver is to start."""
    java = folder / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\n[ "$1" = -version ] && exec {find_java().resolve()} -version\n{does}\n')
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return java


def test_a_java_process_that_ends_at_once_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    java = own_java(tmp_path, "echo no memory >&2\nexit 7")

    ended = run_alone(JAVA_HOME=str(java.parents[1]), TOPICOPS_CACHE=str(tmp_path))

    assert ended.returncode == 1
    assert "TopicopsError: Spark could not be started; the end of its log:\n  no memory\n" in ended.stderr


def test_a_settings_file_that_stops_the_start_is_named_with_the_cause_in_one_sentence(tmp_path: Path) -> None:
    settings = tmp_path / "spark-defaults.conf"
    settings.write_text("spark.jars.packages no.such:thing:1.0\n")
    program = "from topicops.features.spark.edges.driver import cluster_driver; cluster_driver({})"

    said = run_alone(program, SPARK_CONF_DIR=str(tmp_path)).stderr.splitlines()[-1]

    cause = "RuntimeException: [unresolved dependency: no.such#thing;1.0: not found]"
    assert f"TopicopsError: Spark could not be started: {cause}; Spark read {settings}; its log is " in said
    assert Path(said.rpartition(" ")[2]).is_file()


def test_a_java_process_that_ends_outside_a_step_is_one_sentence_too() -> None:
    program = "with spark_session('local[2]') as spark:\n    spark._sc._gateway.proc.kill()\n    spark.range(3).schema"
    ended = run_alone(f"from topicops.features.spark.edges.session import spark_session\n{program}")
    said = "TopicopsError: TOPICOPS_SPARK=local[2]: Spark failed: Spark's Java process has ended"
    assert said in ended.stderr.splitlines()[-1]


def test_without_a_fitting_java_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TopicopsError, match="Java 17, 21 or 25 is needed, and there is no java"):
        driver_java()


def test_an_account_without_a_name_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000770000)
    with pytest.raises(
        TopicopsError, match=r"^this account \(uid 1000770000\) has no name in /etc/passwd, and Spark needs"
    ):
        driver_java()


def test_java_takes_no_home_folder_of_the_account(tmp_path: Path) -> None:
    assert f"-Duser.home={tmp_path}" in local_options(tmp_path)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("sc://127.0.0.1:1", "127.0.0.1:1: Connection refused"),
        ("spark://127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1: Connection refused; 127.0.0.1:2: Connection refused"),
        ("spark://no-such-host.invalid:1", "no-such-host.invalid:1: "),
    ],
)
def test_a_server_that_does_not_answer_is_an_error_at_once(setting: str, said: str) -> None:
    began = time.monotonic()
    with pytest.raises(TopicopsError) as caught:
        module._open(spark_place(setting, from_environment))
    assert str(caught.value).startswith(f"TOPICOPS_SPARK={setting}: no server answers there ({said}")
    assert time.monotonic() - began < 10


def test_a_port_at_which_no_connect_server_answers_is_an_error_within_the_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CONNECT_S", 1.0)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        address = f"sc://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(
            TopicopsError, match=f"^TOPICOPS_SPARK={address}: .*no Connect server has answered within 1 s"
        ):
            module._open(spark_place(address, from_environment))


def test_one_live_master_of_two_is_enough() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as live:
        place = spark_place(f"spark://127.0.0.1:1,127.0.0.1:{live.getsockname()[1]}", from_environment)
        module._require_server(place)


@pytest.mark.soak
def test_all_sessions_of_a_block_are_one_application_that_ends_with_it_used_or_not() -> None:
    ended = run_alone(IN_ONE_APPLICATION, TOPICOPS_SPARK="local[2]")
    assert (ended.stdout.splitlines(), ended.returncode) == (["True 5", "True 5"], 0), ended.stderr


def jobs_of(spark: SparkSession) -> list[tuple[str, list[str]]]:
    """Description and tags of each job so far, oldest first."""
    jvm, context = spark.sparkContext._jvm, spark.sparkContext._jsc.sc()
    assert jvm is not None
    as_java = jvm.scala.jdk.javaapi.CollectionConverters.asJava
    found = sorted(as_java(context.statusStore().jobsList(None)), key=lambda job: job.jobId())
    described = ((job.description(), as_java(job.jobTags())) for job in found)
    return [(text.get() if text.isDefined() else "", sorted(tags)) for text, tags in described]


def test_the_jobs_of_a_step_have_its_name_and_those_after_it_have_not(spark: SparkSession) -> None:
    name = "topicops prod cli/1 diff"
    with spark_step(spark, "prod cli/1 diff", rows=7):
        spark.range(3).count()
        assert spark.conf.get("spark.sql.codegen.wholeStage") == "false"
    spark.range(3).count()
    of_the_step = [tags for text, tags in jobs_of(spark) if text == name]
    assert len(of_the_step) == 1
    assert name in of_the_step[0]
    last, its_tags = jobs_of(spark)[-1]
    assert name not in " ".join((last, *its_tags))
    assert spark.conf.get("spark.sql.codegen.wholeStage") == "true"


def test_a_step_can_be_cancelled_by_its_tag(spark: SparkSession) -> None:
    tag = "topicops prod cli/1 facts"

    def cancel() -> None:
        while not any(text == tag for text, _ in jobs_of(spark)):
            time.sleep(0.05)
        spark.sparkContext.cancelJobsWithTag(tag)

    canceller = run_in_thread(cancel)
    with (
        pytest.raises(TopicopsError, match=r"^facts: Spark failed: .*cancel"),
        spark_step(spark, "prod cli/1 facts", rows=0),
    ):
        spark.range(1 << 36).selectExpr("sum(id % 7)").collect()
    canceller.result(30)


def test_the_last_error_of_the_drivers_log_is_in_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "driver.log"
    log.write_text(
        "2026-01-02T03:04:05,678 WARN Standalone: once more\n"
        "2026-01-02T03:04:05,678 ERROR StandaloneSchedulerBackend: All masters are unresponsive! Giving up.\n"
        "2026-01-02T03:04:05,679 ERROR TransportResponseHandler: Still have 3 requests outstanding\n"
        "2026-01-02T03:04:05,680 ERROR SparkContext: Error initializing SparkContext.\n"
    )
    monkeypatch.setattr(causes, "kept_log", lambda: log)
    monkeypatch.setattr(causes, "log_size", lambda: 0)
    with (
        pytest.raises(
            TopicopsError,
            match=r"^diff: Spark failed: stopped \(its log: All masters are unresponsive! Giving up\.\); the driver's "
            r"log is .*driver\.log; check that its release of Spark is the one of this PySpark, and TOPICOPS_SPARK$",
        ),
        spark_errors("diff"),
    ):
        raise PySparkException("stopped")


def test_out_of_memory_names_the_setting_that_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "driver.log"
    log.write_text('Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n\tat scala.Array\n')
    monkeypatch.setattr(causes, "kept_log", lambda: log)
    monkeypatch.setattr(causes, "log_size", lambda: 0)
    monkeypatch.setattr(causes, "has_ended", lambda *, wait_s: wait_s > 0)
    with (
        pytest.raises(
            TopicopsError,
            match=r"process has ended: OutOfMemoryError: Java heap space; .*; give the driver more memory by "
            r"TOPICOPS_SPARK_MEMORY, for example 4g$",
        ),
        spark_errors("facts"),
    ):
        raise ConnectionRefusedError(111)


@pytest.mark.soak
def test_a_driver_without_enough_memory_says_so() -> None:
    program = (
        "from topicops.features.spark.edges.session import spark_session, spark_step\n"
        "with spark_session('local[2]') as spark, spark_step(spark, 'prod cli/1 diff', rows=0):\n"
        "    spark.range(20_000_000).selectExpr('collect_list(repeat(cast(id as string), 20))').collect()"
    )
    ended = run_alone(program, TOPICOPS_SPARK_MEMORY="480m")
    said = ended.stderr.splitlines()[-1]
    assert "OutOfMemoryError" in said
    assert said.endswith("; give the driver more memory by TOPICOPS_SPARK_MEMORY, for example 4g")


def test_a_folder_that_takes_nothing_is_told_before_java_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(driver.tempfile, "tempdir", str(tmp_path))
    with monkeypatch.context() as full:
        full.setattr(driver, "write_atomically", refused)
        with pytest.raises(TopicopsError, match=rf"^Spark cannot write its files: No space .*: {tmp_path}; free some"):
            driver._own_folder()
    monkeypatch.setattr(driver.shutil, "disk_usage", lambda folder: SimpleNamespace(free=3 << 20))
    with pytest.raises(TopicopsError, match=r"^Spark has 3 MB for its files in "):
        driver._own_folder()


def test_a_long_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_TELL_S", 0.01)
    lines = list[str]()
    assert awaited(run_in_thread(lambda: time.sleep(0.1)), 60.0, lines.append) is None
    assert lines[0] == "Waiting for Spark to start: 0 s of at most 60 s"


@pytest.mark.parametrize(("release", "same"), [("4.3.0", True), ("4.3.7", True), ("4.0.1", False), ("5.3.0", False)])
def test_a_master_must_be_of_the_same_release(release: str, same: bool) -> None:
    assert module.is_same_release(release) is same


def test_a_master_of_another_release_is_refused_before_the_driver_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_release_of_master", lambda server: "4.0.1")
    with closing(socket.create_server(("127.0.0.1", 0))) as live:
        place = spark_place(f"spark://127.0.0.1:{live.getsockname()[1]}", from_environment)
        with pytest.raises(TopicopsError, match=r"the master is Spark 4\.0\.1, and this PySpark .* talks to its own"):
            module._require_server(place)


@pytest.mark.parametrize(
    ("is_here", "proxy", "advice"),
    [
        (True, "https_proxy", "does it use TLS (use_ssl)?"),
        (False, "", "does it use TLS (use_ssl)?"),
        (
            False,
            "https_proxy",
            "https_proxy is set, so the call goes through a proxy: name the host in no_proxy; or does",
        ),
    ],
)
def test_a_silent_connect_server_is_told_with_the_proxy_that_is_in_the_way(
    is_here: bool, proxy: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in module._PROXIES:
        monkeypatch.delenv(name, raising=False)
    if proxy:
        monkeypatch.setenv(proxy, "http://proxy.example:3128")
    assert advice in module._no_connect_server(is_here=is_here)


def test_an_error_of_spark_names_the_deepest_cause(spark: SparkSession) -> None:
    with (
        pytest.raises(TopicopsError, match=r"^diff: Spark failed: .*the rows are gone") as caught,
        spark_errors("diff"),
    ):
        spark.sql("select raise_error('the rows are gone')").collect()
    assert "\n" not in str(caught.value)
    assert spark.sparkContext._jvm is not None
    java = spark.sparkContext._jvm.java.lang
    cause = java.IllegalStateException("Master removed our application: KILLED")
    with (
        pytest.raises(TopicopsError, match="IllegalStateException: Master removed our application: KILLED"),
        spark_errors("diff"),
    ):
        spark.sparkContext._jvm.scala.util.Failure(java.RuntimeException("All failed", cause)).get()


def test_a_secret_that_spark_repeats_is_neither_in_the_error_nor_in_its_cause() -> None:
    spark_place("sc://127.0.0.1:1/;token=hunter2SECRET", from_environment)
    with pytest.raises(TopicopsError) as caught, spark_errors("diff"):
        raise PySparkException("sc://127.0.0.1:1/;token=hunter2SECRET is not accepted")
    assert "hunter2SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "lost",
    [
        ConnectionRefusedError(111),
        Py4JNetworkError("no answer"),
        Py4JError("An error occurred while calling o1.add"),
        Py4JJavaError("collect", SimpleNamespace(_target_id="o1")),  # only Java has its text
    ],
)
def test_every_form_of_a_lost_connection_says_that_java_has_ended(
    lost: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(causes, "has_ended", lambda *, wait_s: wait_s > 0)
    with (
        pytest.raises(TopicopsError, match=r"^diff: Spark failed: Spark's Java process has ended; "),
        spark_errors("diff"),
    ):
        raise lost


def test_a_start_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, killed = threading.Event(), list[bool]()
    monkeypatch.setattr(driver, "_kill_drivers", lambda: killed.append(True))  # it would kill that of other tests
    with pytest.raises(TopicopsError, match="Spark did not start within 0 s"):
        awaited(run_in_thread(ended.wait), 0.1, no_progress)
    ended.set()
    assert killed


@pytest.mark.soak
def test_a_java_that_hangs_is_killed_when_the_time_is_over(tmp_path: Path) -> None:
    java = own_java(tmp_path, "sleep 300")
    program = (
        "from topicops.features.spark.edges import session; session.START_S = 3\n"
        "with session.spark_session('local[2]'): pass"
    )
    ended = run_alone(program, JAVA_HOME=str(java.parents[1]), TOPICOPS_CACHE=str(tmp_path))

    assert "TopicopsError: Spark did not start within 3 s" in ended.stderr
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(java) in " ".join(p.info["cmdline"] or ())]


@pytest.mark.soak
def test_settings_reach_the_driver_and_the_session_and_the_heap_can_be_given() -> None:
    program = (
        "from topicops.features.spark.edges.session import spark_session\n"
        "with spark_session('local[2]') as spark:\n"
        "    heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory()\n"
        "    print(spark.conf.get('spark.sql.files.maxPartitionBytes'), heap >> 20)"
    )
    conf = '{"spark.sql.files.maxPartitionBytes": "5m"}'
    ended = run_alone(program, TOPICOPS_SPARK_CONF=conf, TOPICOPS_SPARK_MEMORY="600m")

    size, megabytes = ended.stdout.split()
    assert size == "5m"
    assert 550 < int(megabytes) <= 600


def test_where_no_archive_can_be_kept_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "file"))
    assert train_archive() is None


@pytest.mark.soak
def test_a_trained_archive_is_used_by_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path))
    archive = train_archive()
    assert archive is not None
    assert sorted(tmp_path.iterdir()) == [archive.with_suffix(""), archive]  # the home of links, and its archive
    assert run_alone(TOPICOPS_CACHE=str(tmp_path)).stdout.startswith("10 True ")


@pytest.mark.parametrize(
    ("reason", "own", "advice"),
    [
        ("OutOfMemoryError: Java heap space", True, "give the driver more memory by TOPICOPS_SPARK_MEMORY"),
        ("OutOfMemoryError: Java heap space", False, "start the server with more memory"),
        ("lost (executor driver): java.lang.OutOfMemoryError: heap", True, "give the driver more memory by TOPICOPS"),
        (
            "lost (executor 1): java.lang.OutOfMemoryError: heap",
            True,
            "give the executors more memory by spark.executor",
        ),
        ("Command exited with code 52", True, "give the executors more memory by spark.executor.memory"),
        ("[INVALID_DRIVER_MEMORY.SYSTEM_MEMORY] Insufficient", True, "give the driver more memory by TOPICOPS_SPARK_"),
        ("failed to connect to all addresses; last error: x", False, "the Connect server has ended, or cannot be"),
        ("the table is gone", True, "check TOPICOPS_SPARK, or run again"),
    ],
)
def test_what_helps_depends_on_whose_memory_was_too_small(reason: str, own: bool, advice: str, tmp_path: Path) -> None:
    assert causes._what_helps(reason, tmp_path if own else None).startswith(advice)


@pytest.mark.parametrize(
    ("page", "release"),
    [
        (b'<span class="version" style="margin-right: 15px;">4.0.1</span> at <li>spark://host:PORT</li>', "4.0.1"),
        (b'<span class="version">4.3.0</span> at <li>spark://host:PORT</li>', "4.3.0"),
        (b'<span class="version">4.0.1</span> at <li>spark://host:7</li>', None),
        (b"<h1>something else</h1>", None),
        (None, None),
    ],
)
def test_only_the_page_of_this_very_master_tells_its_release(
    page: bytes | None, release: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(module, "_PAGE_PORT", port)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                text = b"\x15\x03\x03\x00\x02" if page is None else b"HTTP/1.0 200 OK\r\n\r\n" + page
                connection.sendall(text.replace(b"PORT", str(port).encode()))

        answered = run_in_thread(answer)
        assert module._release_of_master(("127.0.0.1", port)) == release
        answered.result(10)

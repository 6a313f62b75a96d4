import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.killable import with_tests_on_path
from topicops.features.shared.java import find_java, pyspark_jars
from topicops.features.spark.edges.driver import archive_path
from topicops_local.processes import free_port

SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"

DIFF = """
from fixtures.spark_rows import diff_of_rows
from topicops.features.spark.edges.session import spark_session
from topicops.model.plans.delta import DesiredRow, LiveRow
from topicops.steps.planning.diff import diff

desired = [DesiredRow("orders", "present", 6, 3, None, "{}"), DesiredRow("new", "present", 1, 1, None, "{}")]
live = [LiveRow("orders", 3, 3, 3, "a", "{}"), LiveRow("foreign", 1, 1, 1, "b", "{}")]
with spark_session() as spark:
    print(type(spark).__module__)
    with spark_session() as lent:
        print(lent is spark)
    print(diff_of_rows(spark, desired, live) == diff(desired, live), diff_of_rows(spark, [], []) == diff([], []))
"""
QUALITY = """
from fixtures.spark_rows import check_rows
from topicops.features.spark.edges.session import spark_session
from topicops.features.quality.rules import DeletionRow
from topicops.model.runs.facts import PartitionRow

healthy = PartitionRow("orders", 0, 1, True, (1, 2, 3), (1, 2, 3), (), (), 2, 3, 3)
rows = {"partition": [healthy, PartitionRow("orders", 1, -1, False, (1, 2, 3), (), (1, 2, 3), (), 2, 3, 3)]}
with spark_session() as spark:
    results = check_rows(spark, "after", {**rows, "deletion": [DeletionRow("old", 0, 0)]}, earlier=lambda: rows)
    print([(str(r.rule), [*r.examples[0].row.values()][:2], r.rows_failed_before) for r in results if not r.success])
"""

REFUSED = """
from topicops.features.spark.edges.session import spark_session

try:
    with spark_session():
        pass
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("connect")
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{SMALL_JVM} -XX:SharedArchiveFile={archive_path(find_java())}",
        "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    command = [
        pyspark_jars().parent / "bin" / "spark-submit", "--master", "local[2]", "--driver-memory", "1g",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")), "spark-internal",
    ]  # fmt: skip
    environment = {"JAVA_HOME": str(find_java().resolve().parent.parent), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=os.environ | environment)
    try:
        wait_for_port(server, port, folder / "server.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def wait_for_port(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 90
    while server.poll() is None and time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(f"the Connect server did not come up:\n{log.read_text()[-2000:]}")


def printed_on(connect_server: str, program: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=with_tests_on_path() | {"TOPICOPS_SPARK": connect_server},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.stderr == ""
    return ended.stdout.splitlines()


@pytest.mark.soak
def test_the_diff_runs_on_spark_connect_as_it_is(connect_server: str) -> None:
    assert printed_on(connect_server, DIFF) == ["pyspark.sql.connect.session", "True", "True True"]


@pytest.mark.soak
def test_the_quality_rules_run_on_spark_connect_as_they_are(connect_server: str) -> None:
    assert printed_on(connect_server, QUALITY) == [
        "[('Q11', ['orders', 1], 1), ('Q12', ['orders', 1], 1), ('Q13', ['orders', 1], 1), ('Q14', ['old', 0], None)]",
    ]


@pytest.mark.soak
def test_a_setting_that_a_running_server_cannot_take_is_named_with_where_it_comes_from(
    connect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_SPARK_CONF", '{"spark.executor.memory": "2g"}')
    [said] = printed_on(connect_server, REFUSED)
    assert said.startswith("UsageError ")
    assert "a setting of TOPICOPS_SPARK_CONF or of the connection" in said
    assert '"spark.executor.memory"' in said

"""Executors that are killed, and tasks that run twice, leave the diff as it is: on two real executors of Spark."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.killable import with_tests_on_path

ROUNDS = 2
SETTINGS = """\
spark.executor.memory 512m
spark.sql.shuffle.partitions 7
spark.speculation true
spark.speculation.interval 10ms
spark.speculation.multiplier 1
spark.speculation.quantile 0.1
spark.speculation.minTaskRuntime 1ms
"""
ON_EXECUTORS = """
import json, os, random, signal, sys, threading, time
from fixtures.spark_rows import diff_of_rows
from topicops.features.spark.edges.session import spark_session
from topicops.model.plans.delta import DesiredRow, LiveRow
from topicops.steps.planning.diff import diff

chance = random.Random(1)
desired = [DesiredRow(f"t{n}", "present", n % 3, 3, None, "{}") for n in range(0, 3000)]
live = [LiveRow(f"t{n}", n % 4, 3, 3, "a", "{}") for n in range(1000, 4000)]

def executors(jvm):
    pids = [child.pid() for child in jvm.java.lang.ProcessHandle.current().descendants().toArray()]
    return [pid for pid in pids if "CoarseGrainedExecutorBackend" in open(f"/proc/{pid}/cmdline").read()]

def kill_one_at_work(spark, killed):
    tracker = spark.sparkContext.statusTracker()
    while not tracker.getActiveJobsIds():
        time.sleep(0.001)
    pid = chance.choice(executors(spark._jvm))
    os.kill(pid, signal.SIGKILL)
    killed.append(pid)

with spark_session() as spark:
    expected, killed, same = diff(desired, live), [], []
    same.append(diff_of_rows(spark, desired, live) == expected)
    for _ in range(int(sys.argv[1])):
        chance.shuffle(desired), chance.shuffle(live)
        killer = threading.Thread(target=kill_one_at_work, args=(spark, killed))
        killer.start()
        same.append(diff_of_rows(spark, desired, live) == expected)
        killer.join()
        while len(executors(spark._jvm)) < 2:
            time.sleep(0.1)
    print(json.dumps({"same": same, "killed": len(set(killed))}))
"""


@pytest.mark.soak
def test_an_executor_that_is_killed_at_work_leaves_the_diff_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(SETTINGS, encoding="utf-8")
    where = {"TOPICOPS_SPARK": "local-cluster[2,1,512]", "SPARK_CONF_DIR": str(tmp_path), "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        [sys.executable, "-c", ON_EXECUTORS, str(ROUNDS)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=with_tests_on_path() | where,
        timeout=600,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr[-3000:]
    assert json.loads(ended.stdout.splitlines()[-1]) == {"same": [True] * (ROUNDS + 1), "killed": ROUNDS}

"""A move that takes long, in the installed Airflow: little time of workers, a lease for seconds, a good forecast.

``TOPICOPS_MOVE_MINUTES`` says how long it takes at its throttle, 4 by default; a folder that ``TOPICOPS_MOVE_NOTES``
names gets what was seen. The end is compared with what was said of it only where that is half an hour or more.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import cycle, pairwise
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from fixtures.airflow_story import RUN_S, Story, airflow_stories
from fixtures.cluster import running
from fixtures.live import create_topics, look, until
from fixtures.topic_project import TOPIC
from topicops.edges.zookeeper.lease import LEASE
from topicops.features.moves.record import read_moves
from topicops.features.moves.telling.status import status_of
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak]

logger = logging.getLogger(__name__)

MINUTES = float(os.environ.get("TOPICOPS_MOVE_MINUTES", "4"))
NOTES = os.environ.get("TOPICOPS_MOVE_NOTES")
THROTTLE = 48 * 1024
GOING = 5
ROWS = ([5, 1, 2], [1, 5, 3], [2, 3, 5], [3, 4, 5], [4, 5, 1])
TOPICS = 10
MESSAGE = b"x" * 10_000
SETTINGS = """\
  apply: {throttle: 48KiB}
"""
# Kafka's throttle is an average of 11 s, in which each partition is sent up to one fetch.
SMALL_FETCHES = {"replica.fetch.max.bytes": "32768", "replica.fetch.response.max.bytes": "131072"}
SAMPLE_S = 15.0
BETWEEN_TRIES_S = 20.0
"""Least seconds between two tries of the sensor, which looks once a minute."""


@dataclass
class Seen:
    """What was noticed while it moved."""

    forecasts: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start, and seconds that were said to be left."""
    held: list[tuple[str, float]] = field(default_factory=list)
    """Holder of the lease, and the seconds for which it had it."""


@pytest.fixture
def slow_brokers(tmp_path: Path) -> Iterator[LocalCluster]:
    with running(tmp_path / "cluster", brokers=5, broker_properties=SMALL_FETCHES) as cluster:
        yield cluster


@pytest.mark.timeout(MINUTES * 60 * 2 + 1800)
def test_a_long_move_takes_little_of_workers_and_ends_when_it_was_said_to(
    slow_brokers: LocalCluster, tmp_path: Path
) -> None:
    cluster = slow_brokers
    with airflow_stories(tmp_path, cluster, ("long",), settings={"long": SETTINGS}) as (story,):
        fill(story, cluster)
        drain(story)
        assert story.run_pipeline()[0] == "success"
        state, tasks = story.answer("Approve")
        assert (state, tasks["reassign"]) == ("success", "success")
        moves = f"topic_moves_{story.project.environment}"
        (run_id,) = story.client.runs(moves)
        seen = Seen()
        with leases(cluster, seen):
            took = watch(story, moves, run_id, seen)
        assert story.client.run_state(moves, run_id) == "success"
        live = look(cluster).topics
        assert not [name for name, topic in live.items() for row in topic.assignment.values() if GOING in row]
        assert not [name for name, topic in live.items() if any("throttled" in config for config in topic.overrides)]

        worked = worker_seconds(story, moves)
        mine = [held for holder, held in seen.held if "moves" in holder]
        note("seen.json", {"took": took, "worked": worked, **asdict(seen)})
        logger.warning("took %.0f s; seconds of each look %s, with the lease %s", took, worked, mine)
        assert len(mine) == len(worked) > 1
        if MINUTES >= 30:
            ends = [at + left for at, left in seen.forecasts if at > took / 10]
            assert ends == [pytest.approx(took, abs=took / 5)] * len(ends)


def fill(story: Story, cluster: LocalCluster) -> None:
    """Topics of sizes that differ by a factor of 5; all together keep each of four brokers busy for ``MINUTES``."""
    names = [f"long.topic-{number}" for number in range(TOPICS)]
    rows = cycle(ROWS)
    for name in names:
        story.project.write(name, TOPIC)
        create_topics(cluster.bootstrap_servers, NewTopic(name, 2, replica_assignment=[next(rows), next(rows)]))
    weights = [1 + number % 5 for number in range(2 * TOPICS)]
    one = MINUTES * 60 * THROTTLE * 4 / len(MESSAGE) / sum(weights)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 50})
    for number, weight in enumerate(weights):
        for _ in range(round(weight * one)):
            producer.produce(names[number // 2], MESSAGE, partition=number % 2)
            if len(producer) > 5000:
                producer.flush(60)
    assert producer.flush(600) == 0


def drain(story: Story) -> None:
    project = story.project
    file = project.topics / f"environments/{project.environment}.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("    class: sandbox\n", f"    class: sandbox\n    draining: [{GOING}]\n"), "utf-8")
    project.publish()


def watch(story: Story, moves: str, run_id: str, seen: Seen) -> float:
    """Wait until the DAG run has ended, note each forecast, and let another change run meanwhile."""
    home, environment = story.airflow.folder.parent / "home", story.project.environment
    until(lambda: story.client.tasks(moves, run_id).get("step") is not None, timeout_s=RUN_S)
    began, changed, last = time.monotonic(), False, None
    while story.client.run_state(moves, run_id) in ("queued", "running"):
        at = time.monotonic() - began
        assert at < MINUTES * 60 * 2
        record = read_moves(home, environment)
        if record is not None and record.stepped_at != last:
            last = record.stepped_at
            note(f"record-{round(at):05}.json", asdict(record))
            if left := status_of(environment, record).left_s:
                seen.forecasts.append((round(at), left))
        if not changed and at > MINUTES * 60 / 3:
            changed = True
            story.project.write("long.meanwhile", TOPIC)
            assert story.run_pipeline()[0] == "success"
            assert "long.meanwhile" in story.live_topics()
            assert story.client.run_state(moves, run_id) == "running"
        time.sleep(SAMPLE_S)
    assert changed
    return time.monotonic() - began


@contextmanager
def leases(cluster: LocalCluster, seen: Seen) -> Iterator[None]:
    """Note who holds the lease for how long."""
    client, taken = KazooClient(cluster.zookeeper_hosts), list[tuple[str, float]]()
    client.start()

    def look_at(data: bytes | None, *_: object) -> None:
        if data is not None:
            taken.append((data.decode(errors="replace"), time.monotonic()))
        elif taken:
            holder, since = taken.pop()
            seen.held.append((holder, round(time.monotonic() - since, 2)))

    try:
        client.DataWatch(LEASE, look_at)
        yield
    finally:
        client.stop()
        client.close()


def worker_seconds(story: Story, moves: str) -> Sequence[float]:
    """Return for how long a worker was busy with each try of the sensor, by the first and the last line of its log."""
    (log,) = story.airflow.folder.glob(f"logs/dag_id={moves}/*/task_id=step/attempt=1.log")
    lines = [json.loads(line)["timestamp"] for line in log.read_text(encoding="utf-8").splitlines()]
    times = [datetime.fromisoformat(line).timestamp() for line in lines]
    starts = [0, *(at for at in range(1, len(times)) if times[at] - times[at - 1] > BETWEEN_TRIES_S), len(times)]
    return [round(times[end - 1] - times[start], 1) for start, end in pairwise(starts)]


def note(name: str, found: Mapping[str, object]) -> None:
    if NOTES:
        Path(NOTES, name).write_text(json.dumps(found, default=str), encoding="utf-8")

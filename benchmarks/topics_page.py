"""The Topics page: how long a reader waits for an environment of 50,000 topics, beside one of twelve.

Airflow's own API server with its login, and an index as a run writes it: 12 brokers, one of which is not registered,
four partitions a topic with three replicas each. A side is one request, from its start to the last byte of the answer.
A browser can show the page then, because no page needs a script to show what it has.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from fakes import builders
from fakes.builders import NOW, desired_like, live_topic, partition_state
from topicops.features.topic_pages.file import TopicIndex
from topicops.features.topic_pages.indexing import indexed_topics
from topicops.features.topic_pages.values import IndexHead
from topicops.model.cluster.snapshot import LiveTopic
from topicops.on_airflow.names import PREFIX
from topicops_local.airflow import LocalAirflow, start_airflow

BROKERS, DEAD, FEW = 12, 12, 12
PARTITIONS, REPLICAS = 4, 3
OWNERS = 40
ALLOWED = "allowed (1 s)"
PAGES: Mapping[str, str] = {
    "list": "topics",
    "search": "topics?q=topic-4",
    "state and broker": f"topics?state=under-replicated&broker={DEAD}",
    "last page": "topics?order=owner&first={last}",
    "one topic": "topic?name=bench.topic-7",
    "brokers": "brokers",
    "one broker": f"broker?id={DEAD}",
}
"""Addresses, by what they show."""


def side_name(page: str, topics: int) -> str:
    return f"{page}, {topics:,} topics"


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with tempfile.TemporaryDirectory(prefix="topicops-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for environment, count in (("few", FEW), ("many", topics)):
            write_index(folder / "home", environment, count)
        with airflow(folder) as services, signed_in(services) as http:
            found = {side_name(page, topics): timed(fetch(http, "many", page, topics)) for page in PAGES}
            yield {side_name("list", FEW): timed(fetch(http, "few", "list", FEW)), **found, ALLOWED: lambda: 1.0}


def write_index(home: Path, environment: str, topics: int) -> None:
    """Of so many topics; each that has a replica on the dead broker is under-replicated."""
    brokers = [broker for broker in range(1, BROKERS + 1) if broker != DEAD]
    live = builders.snapshot(
        *(a_topic(number) for number in range(topics)), racks={broker: f"r{broker % 3}" for broker in brokers}
    )
    described = {
        name: replace(desired_like(topic), owner=f"team-{number % OWNERS}")
        for number, (name, topic) in enumerate(live.topics.items())
    }
    head = IndexHead(
        environment=environment,
        run=f"topic_pipeline_{environment}/manual__1",
        read_at=NOW,
        live=replace(live, topics={}),
    )
    TopicIndex.of(home, environment).write(head, indexed_topics(live, described, {}, {}))


def a_topic(number: int) -> LiveTopic:
    assignment = {
        partition: tuple((number + partition + replica) % BROKERS + 1 for replica in range(REPLICAS))
        for partition in range(PARTITIONS)
    }
    in_sync = {partition: tuple(b for b in replicas if b != DEAD) for partition, replicas in assignment.items()}
    states = {partition: partition_state(isr) for partition, isr in in_sync.items()}
    return live_topic(f"bench.topic-{number}", assignment=assignment, states=states)


@contextmanager
def airflow(folder: Path) -> Iterator[LocalAirflow]:
    for part in ("airflow", "dags"):
        (folder / part).mkdir()
    with start_airflow(
        folder / "airflow", dags=folder / "dags", environment={"TOPICOPS_HOME": str(folder / "home")}
    ) as services:
        yield services


@contextmanager
def signed_in(services: LocalAirflow) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=services.url, trust_env=False, timeout=60.0) as http:
        person = {"username": services.username, "password": services.password}
        token = http.post("/auth/token", json=person).raise_for_status().json()["access_token"]
        http.headers["Authorization"] = f"Bearer {token}"
        yield http


def fetch(http: httpx.Client, environment: str, page: str, topics: int) -> Callable[[], None]:
    address = f"{PREFIX}/dags/topic_pipeline_{environment}/{PAGES[page].format(last=max(0, topics - 10))}"

    def get() -> None:
        if "bench.topic" not in (text := http.get(address).raise_for_status().text) and "Controller" not in text:
            raise BenchmarkError(f"{address} shows no topic")

    return get


def comparisons(topics: int) -> Sequence[Comparison]:
    beside = Comparison(
        id=f"list of {topics:,} / list of {FEW}",
        numerator=side_name("list", topics),
        denominator=side_name("list", FEW),
        goal=20.0,
        better="lower",
    )
    return (
        beside,
        *(
            Comparison(
                id=f"{page}, {topics:,} topics / a second",
                numerator=side_name(page, topics),
                denominator=ALLOWED,
                goal=1.0,
                better="lower",
            )
            for page in PAGES
        ),
    )


BENCHMARK = Benchmark(name="topics_page", topics=50_000, rounds=7, comparisons=comparisons, sides=sides)

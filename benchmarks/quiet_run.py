"""What a run of the pipeline costs in all: CPU seconds of every process that it starts, JVMs among them.

``python -m benchmarks.quiet_run [--before FOLDER] [--environments 20]``; it is no part of ``python -m benchmarks``.

Airflow's own services with their SQLite database, a cluster of three brokers, 20 topics that are as their files want
them, mode apply. Three kinds of runs: nothing to do, 9 changes (3 creates, expansions and config changes each) and 200
(50 of each kind, deletes too). Then 9 changes in each of two environments at once, whose topics have prefixes of their
own. With ``--before``, the folder of an older checkout of this repository, a second Airflow
runs that one's DAGs on the same cluster; the runs take turns, so that whatever slows the machine slows both.

- Wall time is from the request that starts a run to the end that Airflow records for it.
- CPU seconds are those of Airflow's services and all below them, until a second after the end, minus what the services
  take in the same time while no run goes on.
- Processes are those that were seen: one that lives shorter than a tenth of a second may be missed.

With ``--environments`` as many environments point to the cluster, one of them broken and one with a name that can name
no DAG. All others run at once: once in full, then twice with nothing to do.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from benchmarks.airflow import LIFE
from benchmarks.apply import (
    BEFORE,
    BROKERS,
    HEAP_MB,
    MORE_PARTITIONS,
    PARTITIONS,
    REPLICAS,
    REQUEST_S,
    present,
    require_done,
    write_specs,
)
from benchmarks.harness import BenchmarkError, machine
from benchmarks.process_cpu import Cost, counted
from benchmarks.verify import local_cluster
from topicops.features.shared.airflow_client import RUN_ENDED, NotNowError
from topicops_local.airflow import LocalAirflow, start_airflow, wait_for_dags
from topicops_local.airflow_client import LocalAirflowClient
from topicops_local.cluster import LocalCluster

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results"
BASE_TOPICS = tuple(f"bench.base.topic-{number}" for number in range(20))
"""That no run changes."""
UNUSABLE: Mapping[str, str] = {"broken": "spec: [", "prod eu": "apiVersion: topicops/v1\nkind: Environment\n"}
"""Environments that cannot run, by the names of their files."""
TWO = ("one", "two")
"""Environments with topics of their own on one cluster."""
IN_TWO = "9 changes in each of two environments"
SETTLES_S = 1.0
"""After a run, for processes that end after it."""
IDLE_S = 20.0
RUN_S = 900.0
LOOK_EVERY_S = 1.0
TRIES = 10


@dataclass(kw_only=True)
class Installation:
    """One Airflow with the DAGs of one checkout."""

    name: str
    project: Path
    airflow: LocalAirflow
    client: LocalAirflowClient
    cluster: LocalCluster
    environments: Sequence[str]
    idle: float = 0.0
    """CPU seconds in a second without a run."""
    turn: int = 0

    @property
    def roots(self) -> list[int]:
        return [process.pid for process in self.airflow.processes.values()]

    def measure_idle(self) -> None:
        with counted(self.roots) as cost:
            time.sleep(IDLE_S)
        self.idle = cost.cpu_s / cost.seconds

    def describe(self, texts: Mapping[str, str]) -> None:
        """These topics, and those that no run changes."""
        base = dict.fromkeys(BASE_TOPICS, present(partitions=PARTITIONS, retention_ms=BEFORE))
        write_specs(self.project / "topics", {**base, **texts}, self.cluster)
        (written,) = (self.project / "topics/environments").glob("*.yaml")
        text = written.read_text(encoding="utf-8")
        written.unlink()
        for name in self.environments:
            own = text.replace("name: bench", f"name: {name}")
            if name in TWO:
                own = own.replace("cluster: {", f"cluster: {{topics: {{prefix: {name}.}}, ")
            (written.parent / f"{name}.yaml").write_text(own, encoding="utf-8")
        for name, broken in UNUSABLE.items() if len(self.environments) > len(TWO) else ():
            (written.parent / f"{name}.yaml").write_text(broken, encoding="utf-8")

    def lay(self, each: int) -> None:
        """Make what the first run with changes expands, configures and deletes."""
        self.turn = len(LIFE) - 1
        partitions = (MORE_PARTITIONS, MORE_PARTITIONS, PARTITIONS)
        names = {name: count for turn, count in enumerate(partitions) for name in self._names(turn, each)}
        for prefix in [f"{name}." for name in self.environments if name in TWO] or [""]:
            make_topics(self.cluster, {f"{prefix}{name}": count for name, count in names.items()})

    def changes(self, each: int, *, deletes: bool) -> Cost:
        """A run that creates, expands and configures as many topics each, and deletes as many if it is to."""
        life = LIFE if deletes else LIFE[:-1]
        self.describe({n: text for age, text in enumerate(life) for n in self._names(self.turn - age, each)})
        self.turn += 1
        return self.run()

    def _names(self, turn: int, each: int) -> Sequence[str]:
        return tuple(f"{self.name}.{each}.turn-{turn}.topic-{number}" for number in range(each))

    def run(self) -> Cost:
        """One run of each environment, all at once. Raises ``BenchmarkError`` if one does not succeed."""
        dags = [f"topic_pipeline_{environment}" for environment in self.environments]
        began = time.time()
        with counted(self.roots) as cost:
            runs = {dag_id: self._triggered(dag_id) for dag_id in dags}
            ended = max(self._ended_at(dag_id, run_id) for dag_id, run_id in runs.items())
            time.sleep(SETTLES_S)
        cost.cpu_s -= self.idle * cost.seconds
        cost.seconds = ended - began
        return cost

    def _triggered(self, dag_id: str) -> str:
        """The id of a new run. SQLite lets one writer in at a time, so Airflow may refuse for a moment."""
        for _ in range(TRIES):
            try:
                return self.client.trigger(dag_id, {})
            except NotNowError:
                time.sleep(LOOK_EVERY_S)
        raise BenchmarkError(f"{dag_id}: Airflow starts no run")

    def _ended_at(self, dag_id: str, run_id: str) -> float:
        deadline = time.monotonic() + RUN_S
        while (state := self.client.run_state(dag_id, run_id)) not in RUN_ENDED:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{dag_id}, run {run_id} has not ended within {RUN_S:.0f} s")
            time.sleep(LOOK_EVERY_S)
        ended = self.client.run_ended_at(dag_id, run_id)
        if state != "success" or ended is None:
            raise BenchmarkError(f"{dag_id}, run {run_id} ended {state}; logs below {self.project}")
        return ended.timestamp()


def make_topics(cluster: LocalCluster, partitions: Mapping[str, int]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    new = [NewTopic(name, count, REPLICAS, config={"retention.ms": BEFORE}) for name, count in partitions.items()]
    require_done(admin.create_topics(new, request_timeout=REQUEST_S))


@contextmanager
def installation(
    name: str, checkout: Path, cluster: LocalCluster, folder: Path, environments: Sequence[str]
) -> Iterator[Installation]:
    project = folder / name
    shutil.copytree(checkout / "dags", project / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    (project / "airflow").mkdir()
    (project / "topics/environments").mkdir(parents=True)
    for environment in environments:
        (project / f"topics/environments/{environment}.yaml").touch()
    variables = {
        "PYTHONPATH": str(checkout / "plugins"),
        "TOPICOPS_HOME": str(project / "home"),
        "TOPICOPS_MODE": "apply",
    }
    with start_airflow(project / "airflow", dags=project / "dags", environment=variables) as airflow:
        client = airflow.client()
        wait_for_dags(client, [f"topic_pipeline_{environment}" for environment in environments])
        found = Installation(
            name=name, project=project, airflow=airflow, client=client, cluster=cluster, environments=environments
        )
        yield found


KINDS: Mapping[str, Callable[[Installation], Cost]] = {
    "nothing to do": lambda where: where.run(),
    "9 changes": lambda where: where.changes(3, deletes=False),
    "200 changes": lambda where: where.changes(50, deletes=True),
}


def compare(checkouts: Mapping[str, Path], rounds: int) -> Mapping[str, Mapping[str, Sequence[Cost]]]:
    """By kind of run and by name of checkout."""
    with side_by_side(checkouts, ["bench"]) as places:
        found = {kind: _rounds(kind, places, rounds) for kind in KINDS}
    with side_by_side(checkouts, TWO) as places:
        for place in places:
            place.describe({})
            _told(IN_TWO, place, place.run(), "warm-up")
            place.lay(3)
        return {**found, IN_TWO: _by_turns(IN_TWO, places, rounds, KINDS["9 changes"])}


@contextmanager
def side_by_side(checkouts: Mapping[str, Path], environments: Sequence[str]) -> Iterator[Sequence[Installation]]:
    """One cluster, and an Airflow for each checkout."""
    with bench() as (cluster, folder), ExitStack() as stack:
        places = [
            stack.enter_context(installation(name, checkout, cluster, folder, environments))
            for name, checkout in checkouts.items()
        ]
        for place in places:
            place.measure_idle()
        yield places


def _rounds(kind: str, places: Sequence[Installation], rounds: int) -> Mapping[str, Sequence[Cost]]:
    for place in places:
        match kind:
            case "nothing to do":
                place.describe({})
                _told(kind, place, place.run(), "warm-up")
                _told(kind, place, place.run(), "warm-up")
            case "9 changes":
                place.lay(3)
            case _:
                place.lay(50)
    return _by_turns(kind, places, rounds, KINDS[kind])


def _by_turns(
    kind: str, places: Sequence[Installation], rounds: int, cost_of: Callable[[Installation], Cost]
) -> Mapping[str, Sequence[Cost]]:
    found: dict[str, list[Cost]] = {place.name: [] for place in places}
    for number in range(rounds):
        for place in reversed(places) if number % 2 else places:
            found[place.name].append(_told(kind, place, cost_of(place), f"round {number + 1}"))
    return found


def many(checkout: Path, environments: int) -> Sequence[Cost]:
    """One full run of all environments that can run, and two quiet ones."""
    names = [f"env-{number:02}" for number in range(1, environments - len(UNUSABLE) + 1)]
    with bench() as (cluster, folder), installation("after", checkout, cluster, folder, names) as place:
        place.measure_idle()
        place.describe({})
        kind = f"{len(names)} of {environments} environments at once"
        found = [_told(kind, place, place.run(), words) for words in ("full", "quiet", "quiet")]
        print(f"idle: {place.idle:.3f} CPU seconds a second")
        return found


@contextmanager
def bench() -> Iterator[tuple[LocalCluster, Path]]:
    """A cluster with the topics that no run changes, and an empty folder."""
    with (
        tempfile.TemporaryDirectory(prefix="topicops-bench-", ignore_cleanup_errors=True) as folder,
        local_cluster(heap_mb=HEAP_MB, broker_properties=BROKERS) as cluster,
    ):
        make_topics(cluster, dict.fromkeys(BASE_TOPICS, PARTITIONS))
        yield cluster, Path(folder)


def _told(kind: str, place: Installation, cost: Cost, words: str) -> Cost:
    print(
        f"{kind}, {place.name}, {words}: {cost.seconds:.1f} s, {cost.cpu_s:.1f} CPU s, {cost.processes} processes, "
        f"{cost.jvms} JVMs",
        flush=True,
    )
    return cost


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quiet_run", description=__doc__)
    parser.add_argument("--before", type=Path, help="an older checkout of this repository")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--environments", type=int, help="only this: so many environments at once")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    asked.results.mkdir(parents=True, exist_ok=True)
    if asked.environments:
        costs: object = [asdict(cost) for cost in many(ROOT, asked.environments)]
        name = "quiet_environments"
    else:
        checkouts = {"before": asked.before, "after": ROOT} if asked.before else {"after": ROOT}
        found = compare(checkouts, asked.rounds)
        costs = {kind: {name: _medians(runs) for name, runs in sides.items()} for kind, sides in found.items()}
        name = "quiet_run"
    document = {"name": name, "machine": machine(), "costs": costs}
    (asked.results / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _medians(costs: Sequence[Cost]) -> Mapping[str, float]:
    return {name: round(median(asdict(cost)[name] for cost in costs), 2) for name in asdict(costs[0])}


if __name__ == "__main__":
    main()

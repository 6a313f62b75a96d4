"""A fleet: each environment's plan is that of its own run, and a broken environment stops no other."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from kazoo.client import KazooClient
from pyspark.sql import SparkSession

from fixtures.znode_tree import BASE, config, topic
from fixtures.zookeeper import Chroot, start_zookeeper
from topicops import cli
from topicops.edges.home.memories import keep_topic_count
from topicops.features.ask.drift.commands import live_drift
from topicops.features.fleet import fleet as fleet_steps
from topicops.features.fleet.fleet import Fleet
from topicops.features.fleet.values import EnvironmentResult, FleetReport, Standing
from topicops.flow import planning, single_steps
from topicops.flow.engines import PYTHON
from topicops.flow.runs.run import open_run
from topicops.model.errors import TopicopsError
from topicops.model.json_types import json_text
from topicops.plugged import ENGINES
from topicops_local.processes import stop

ROWS = ({0: [1, 2, 3]}, {0: [1, 2, 3], 1: [2, 3, 1]})
KRAFT_CONTROLLER = '{"version":2,"brokerid":1,"timestamp":"1700000000000","kraftControllerEpoch":3}'
NOWHERE = "127.0.0.1:1"
_A_TRANSACTION = 400
_IN_FLIGHT = 8


@dataclass(frozen=True)
class FleetFolder:
    """``topics/`` and a home in one folder, and the servers below whose chroot the clusters are."""

    folder: Path
    servers: str
    """With the chroot that all clusters have above their own."""
    client: KazooClient
    """On that chroot."""

    @property
    def topics(self) -> Path:
        return self.folder / "topics"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def describe(self, topics: int) -> None:
        """As many topics, the same in each environment; a paused one, and one with a tombstone."""
        for name in names(topics):
            self._write(f"shop/{name}", "Topic", name, spec={"keyed": False, "configs": {"retention.ms": "7d"}})
        pause = {"state": "paused", "reason": "Wait.", "until": "2999-01-01T00:00:00Z"}
        self._write("shop/paused", "Topic", "paused", lifecycle=pause, spec={"keyed": False})
        self._write("shop/over", "Topic", "over", lifecycle={"state": "absent", "reason": "Over."})

    def add(self, environment: str, topics: int, *, number: int = 0, hosts: str = "", **laid: str) -> None:
        """An environment, and its cluster: each number differs from the specs in other topics.

        Args:
            hosts: Where its file says that the cluster is; by default where it is.
            laid: Other znodes, by the word before the first ``_``.
        """
        cluster = {"class": "sandbox", "zookeeper": {"hosts": hosts or f"{self.servers}/{environment}"}}
        spec = {"cluster": {**cluster, "kafka": {"bootstrapServers": NOWHERE}}, "limits": {"deletesPercent": 100}}
        spec["defaults"] = {"partitions": 2, "replicationFactor": 3}
        self._write(f"environments/{environment}", "Environment", environment, spec=spec)
        znodes = {**BASE, "/cluster/id": json.dumps({"version": "1", "id": cluster_id(environment)})}
        znodes |= {f"/{word}": data for word, data in laid.items()}
        for path, data in znodes.items():
            self.client.create(f"/{environment}{path}", data.encode(), makepath=True)
        _create_all(self.client, ((f"/{environment}{path}", data) for path, data in _topics(topics, number)))

    def remember(self, environment: str, topics: int) -> None:
        """The cluster had as many topics at the last good snapshot."""
        keep_topic_count(self.home, cluster_id(environment), topics)

    def _write(self, path: str, kind: str, name: str, **rest: Mapping[str, object]) -> None:
        owner = {"owner": "team-shop"} if kind == "Topic" else {}
        document = {"apiVersion": "topicops/v1", "kind": kind, "metadata": {"name": name, **owner}, **rest}
        file = self.topics / f"{path}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def names(topics: int) -> Sequence[str]:
    return [f"shop.topic-{number:05}" for number in range(topics)]


def cluster_id(environment: str) -> str:
    return f"{environment:x<22}"


def _topics(topics: int, number: int) -> Iterator[tuple[str, str]]:
    """The two znodes of each live topic: some are missing, some have other values, some no file describes."""
    for place, name in enumerate(names(topics)):
        if (place + number) % 37 == 5:
            continue
        yield f"/brokers/topics/{name}", topic(ROWS[(place + number) % 41 != 7])
        yield f"/config/topics/{name}", config(retention_ms="1" if (place + number) % 43 == 11 else "604800000")
    for name in ("paused", f"stray-{number}", *(["over"] if number % 2 else [])):
        yield f"/brokers/topics/{name}", topic(ROWS[1])
        yield f"/config/topics/{name}", config()


def _create_all(client: KazooClient, znodes: Iterator[tuple[str, str]]) -> None:
    """All in this order, many in a transaction and some transactions on the way."""
    flying: deque[Any] = deque()
    while batch := list(islice(znodes, _A_TRANSACTION)):
        transaction = client.transaction()
        for path, data in batch:
            transaction.create(path, data.encode())
        flying.append(transaction.commit_async())
        if len(flying) == _IN_FLIGHT:
            _require_done(flying.popleft())
    while flying:
        _require_done(flying.popleft())


def _require_done(transaction: Any) -> None:
    assert not any(isinstance(answer, Exception) for answer in transaction.get(timeout=60))


BROKEN = ("nowhere", "kraft", "shrunken", "dead")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chroot: Chroot) -> FleetFolder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path / "home"))
    return FleetFolder(tmp_path, chroot.hosts, chroot.client)


@pytest.fixture
def large_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast_folder: Path) -> Iterator[FleetFolder]:
    """On a server of its own, with memory for a hundred thousand topics."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path / "home"))
    server = start_zookeeper(fast_folder / "large", heap_mb=1024)
    client = KazooClient(server.hosts)
    client.start(timeout=30)
    try:
        yield FleetFolder(tmp_path, server.hosts, client)
    finally:
        client.stop()
        client.close()
        stop([server.process], grace_s=2.0)


def lay(folder: FleetFolder, *, environments: int, topics: int) -> None:
    """Four of the environments are broken, each in another way."""
    folder.describe(topics)
    for number in range(environments - len(BROKEN)):
        folder.add(f"env-{number:02}", topics, number=number)
    folder.add("nowhere", 1, hosts=f"{folder.servers}/nobody")
    folder.add("kraft", 1, controller=KRAFT_CONTROLLER)
    folder.add("shrunken", topics // 2)
    folder.remember("shrunken", topics)
    folder.add("dead", 1, hosts=f"{NOWHERE}/dead")


def new_fleet(folder: FleetFolder, *named: str, run_id: str = "fleet") -> Fleet:
    environments = fleet_steps.environments_of(folder.topics, named or ("all",))
    return fleet_steps.open_fleet(environments, topics=folder.topics, group="cli", run_id=run_id)


def alone(folder: FleetFolder, environment: str) -> bytes | str:
    """Return the plan of a run of that environment alone, or why it has none."""
    run = open_run(environment=environment, topics=folder.topics, group="cli", run_id=f"alone-{environment}")
    try:
        planning.make_plan(run, engine="python")
    except TopicopsError as error:
        return str(error)
    return run.store.path("plan.json").read_bytes()


def by_environment(report: FleetReport) -> Mapping[str, EnvironmentResult]:
    return {result.environment: result for result in report.environments}


def require_as_alone(folder: FleetFolder, report: FleetReport) -> None:
    """Raise unless each environment has the plan, or the error, that it has alone."""
    found = by_environment(report)
    with ThreadPoolExecutor(8) as pool:
        wanted = dict(zip(found, pool.map(partial(alone, folder), found), strict=True))
    for environment, result in found.items():
        assert (Path(result.path).read_bytes() if result.path else result.summary) == wanted[environment]


def require_whole(report: FleetReport) -> None:
    """Raise unless exactly the four environments are broken, each with its own word."""
    found = by_environment(report)
    assert {name: found[name].result for name in BROKEN} == {
        "nowhere": Standing.WRONG_CLUSTER,
        "kraft": Standing.WRONG_CLUSTER,
        "shrunken": Standing.WRONG_CLUSTER,
        "dead": Standing.UNREACHABLE,
    }
    assert {name: found[name].code for name in BROKEN} == {
        "nowhere": "TOP504",
        "kraft": "TOP801",
        "shrunken": "TOP416",
        "dead": None,
    }
    assert len(report.broken) == len(BROKEN)
    assert report.exit_status == 8


def test_each_plan_is_that_of_its_own_run_and_a_broken_environment_stops_no_other(
    folder: FleetFolder, spark: SparkSession
) -> None:
    folder.describe(10)
    folder.add("env-00", 10)
    folder.add("env-01", 10, number=12)
    folder.add("nowhere", 0, hosts=f"{folder.servers}/nobody")

    report = fleet_steps.plan_fleet(new_fleet(folder), engine="spark", engines=ENGINES)

    assert [each.result for each in report.broken] == [Standing.WRONG_CLUSTER]
    assert report.exit_status == 8
    require_as_alone(folder, report)


@pytest.mark.soak
def test_the_engine_decides_nothing(folder: FleetFolder, spark: SparkSession) -> None:
    lay(folder, environments=8, topics=60)

    report = fleet_steps.plan_fleet(new_fleet(folder), engine="spark", engines=ENGINES)
    plain = fleet_steps.plan_fleet(new_fleet(folder, run_id="plain"), engine="python")

    require_whole(report)
    require_as_alone(folder, report)
    assert [replace(result, path=None) for result in plain.environments] == [
        replace(result, path=None) for result in report.environments
    ]


@pytest.mark.soak
def test_46_of_50_environments_are_planned_as_alone(large_folder: FleetFolder, spark: SparkSession) -> None:
    lay(large_folder, environments=50, topics=2_000)

    report = fleet_steps.plan_fleet(new_fleet(large_folder), engines=ENGINES)

    require_whole(report)
    assert sum(result.path is not None for result in report.environments) == 46
    require_as_alone(large_folder, report)


@pytest.mark.soak
def test_the_drift_of_a_fleet_is_that_of_each_environment(folder: FleetFolder) -> None:
    lay(folder, environments=6, topics=60)

    fleet_steps.drift_fleet(new_fleet(folder, run_id="drift"))

    for environment in ("env-00", "env-01"):
        own = open_run(environment=environment, topics=folder.topics, group="cli", run_id=f"own-{environment}")
        single_steps.validate(own)
        single_steps.snapshot(own, states=False)
        single_steps.diff(own, engine=PYTHON)
        single_steps.record_drift(own)
        run = open_run(environment=environment, topics=folder.topics, group="cli", run_id="drift", part=environment)
        assert run.store.read_text("drift.json") == own.store.read_text("drift.json")
        now = open_run(environment=environment, topics=folder.topics, group="cli", run_id="never-made")
        assert json.loads(run.store.read_text("drift.json")) == json.loads(json_text(live_drift(now)))


def test_the_command_prints_a_row_for_each_environment_and_ends_with_the_worst_status(
    folder: FleetFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.describe(1)
    for name in ("quiet", "empty"):
        folder.add(name, 1, hosts=f"{folder.servers}/nobody" if name == "empty" else "")
    arguments = ["plan", "-e", "quiet", "-e", "empty", "--engine", "python", "--only", "shop.*", "--out", "plans"]

    status = cli.run(arguments)

    out = capsys.readouterr().out.splitlines()
    assert status == 8
    assert out[0] == "environment  result"
    assert out[1].startswith("quiet        No changes")
    assert out[2].startswith(f"empty        TOP504: {folder.servers}/nobody: there is no /cluster/id here")
    assert out[-1] == "1 of 2 environments without changes, 1 with a wrong cluster."
    assert [path.name for path in (folder.folder / "plans").iterdir()] == ["quiet.json"]


def test_json_has_what_a_program_needs_of_each_environment(
    folder: FleetFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.describe(8)
    folder.add("one", 8)
    folder.add("two", 8, number=30)
    arguments = ["plan", "-e", "all", "--engine", "python", "--format", "json", "--only", "*topic-0000[5-7]"]

    status = cli.run([*arguments, "--detailed-exitcode"])

    found = json.loads(capsys.readouterr().out)
    assert status == 2
    assert (found["format_version"], found["exit_status"]) == ("1.0", 0)
    assert found["counts"] == {"without changes": 1, "held": 1}
    one, two = found["environments"]
    assert (one["environment"], one["result"], one["counts"]["create"]) == ("one", "held", 1)
    assert (two["result"], two["counts"]["create"], two["code"]) == ("without changes", 0, None)
    assert json.loads(Path(one["path"]).read_text())["fingerprint"] == one["fingerprint"]


def test_an_environment_that_has_no_file_is_refused_before_anything_is_read(
    folder: FleetFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.describe(1)
    folder.add("one", 1)

    status = cli.run(["drift", "-e", "one", "-e", "oen"])

    assert status == 1
    assert "no environment is called 'oen'; in environments/ there are: one" in capsys.readouterr().err


def test_files_with_errors_are_a_row_of_each_environment_that_they_stop(
    folder: FleetFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.describe(1)
    folder.add("good", 1)
    (folder.topics / "environments/bad.yaml").write_text("kind: Nonsense\n")

    status = cli.run(["plan", "-e", "all", "--engine", "python", "--only", "none"])

    shown = capsys.readouterr()
    assert status == 1
    assert "1 of 2 environments without a match, 1 with invalid files." in shown.out
    assert shown.err.count("topics/environments/bad.yaml:1: TOP2") >= 1


def test_one_environment_is_no_fleet(folder: FleetFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.describe(1)
    folder.add("all", 1)

    for named in (["all"], ["all", "all"]):
        status = cli.run(["plan", *(word for name in named for word in ("-e", name)), "--engine", "python"])
        assert (status, capsys.readouterr().out.splitlines()[1][:24]) == (0, "Plan for environment all")


def test_a_plan_to_verify_belongs_to_one_environment(folder: FleetFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.describe(1)
    assert cli.run(["verify", "-e", "one", "-e", "two", "plan.json"]) == 1
    assert "a plan is about one environment" in capsys.readouterr().err


@pytest.mark.soak
def test_verify_checks_each_cluster_as_alone(folder: FleetFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.describe(2)
    folder.add("one", 2)
    folder.add("nowhere", 1, hosts=f"{folder.servers}/nobody")
    alone = cli.run(["verify", "-e", "one"])
    capsys.readouterr()

    status = cli.run(["verify", "-e", "all", "--format", "json"])

    found = {row["environment"]: row["exit_status"] for row in json.loads(capsys.readouterr().out)["environments"]}
    assert (status, found) == (8, {"one": alone, "nowhere": 8})

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from fixtures.live import zookeeper
from topicops.features.shared.java import find_java
from topicops.model.errors import LocalClusterError, UsageError
from topicops_local import local as cli
from topicops_local import server_files
from topicops_local.class_archive import train_archive
from topicops_local.cluster import LocalCluster
from topicops_local.jars import kafka_jars
from topicops_local.processes import ProcessMark, free_port, mark_of, spawn, stop
from topicops_local.readiness import ask_broker
from topicops_local.state import ClusterState, Server, read_state, write_state

ALL = frozenset({1, 2, 3})


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[ProcessMark]:
    """Yield a process that has nothing to do with any cluster."""
    process = spawn(["sleep", "600"], log=tmp_path / "log", folder=tmp_path, environment=os.environ)
    yield process
    stop([process], grace_s=5)


def recorded(home: Path, process: ProcessMark | None) -> LocalCluster:
    """Return a cluster of one broker that an earlier command claims to have started as that process."""
    servers = (
        Server(role="zookeeper", port=free_port()),
        Server(role="broker-1", port=free_port(), process=process, broker=1, rack="r1"),
    )
    (home / "cluster").mkdir(parents=True)
    write_state(home / "cluster", ClusterState(servers=servers))
    found = LocalCluster.find(home)
    assert found is not None
    return found


def test_every_brokers_own_port_answers_and_knows_every_broker_and_the_controller(local_cluster: LocalCluster) -> None:
    answers = {broker: ask_broker(port) for broker, port in local_cluster.broker_ports.items()}
    assert {broker: answer and answer.brokers for broker, answer in answers.items()} == dict.fromkeys(ALL, ALL)
    assert {answer and answer.controller for answer in answers.values()} == {local_cluster.status().controller}


def test_the_brokers_stand_on_three_racks_under_the_chroot(local_cluster: LocalCluster) -> None:
    with zookeeper(local_cluster) as client:
        racks = {broker: json.loads(client.get(f"/brokers/ids/{broker}")[0])["rack"] for broker in ALL}
        cluster_id = json.loads(client.get("/cluster/id")[0])["id"]
    assert local_cluster.zookeeper_hosts.endswith("/kafka")
    assert racks == {1: "r1", 2: "r2", 3: "r3"}
    assert local_cluster.cluster_id == cluster_id


def test_brokers_and_zookeeper_load_their_classes_from_the_archive(local_cluster: LocalCluster) -> None:
    archive = train_archive()  # `make setup` has created it: this returns at once
    pids = [process.pid for process in local_cluster.status().processes]
    mapped = [{file.path for file in psutil.Process(pid).memory_maps()} for pid in pids]
    assert archive is not None
    assert [str(archive) in files for files in mapped] == [True] * 4


def test_where_no_archive_can_be_kept_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "file"))
    assert train_archive() is None


def test_kafkas_tool_takes_a_cluster_id_that_begins_with_a_dash(tmp_path: Path) -> None:
    """One random id in 64 does."""
    settings = server_files.kraft_properties(
        1, rack="", port=1, controller_ports={1: 2}, data=tmp_path / "data", extra={}
    )
    file = tmp_path / "server.properties"
    file.write_text(server_files.properties_text(settings), encoding="utf-8")
    dashed = "-" + "A" * 21
    command = server_files.format_command(find_java(), kafka_jars(), file, cluster_id=dashed)
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert f"cluster.id={dashed}" in (tmp_path / "data" / "meta.properties").read_text(encoding="utf-8")


@pytest.mark.parametrize("kraft", [False, True])
def test_a_folder_with_a_comma_is_refused_because_brokers_would_share_what_is_before_it(
    tmp_path: Path, kraft: bool
) -> None:
    with pytest.raises(LocalClusterError, match="no folder with a comma in its path; name another with --home"):
        LocalCluster.up(tmp_path / "topics, mine", kraft=kraft)
    assert not any(tmp_path.iterdir())


def test_a_second_up_says_that_it_runs_and_reuses_it(local_cluster: LocalCluster) -> None:
    said: list[str] = []
    pids, servers = local_cluster.broker_pids, local_cluster.bootstrap_servers
    again = LocalCluster.up(local_cluster.home, progress=said.append)
    assert said == ["the local cluster is running already"]
    assert again.broker_pids == pids
    assert again.bootstrap_servers == servers


def test_a_second_up_that_asks_for_something_else_is_refused(local_cluster: LocalCluster) -> None:
    with pytest.raises(UsageError, match="its own data and broker ports; run `topicops local down` first"):
        LocalCluster.up(local_cluster.home, fresh=True, broker_ports=[1, 2, 3])


def test_a_paused_broker_is_silent_until_it_is_resumed(local_cluster: LocalCluster) -> None:
    local_cluster.pause(3)
    try:
        assert ask_broker(local_cluster.broker_ports[3], timeout_s=0.3) is None
        assert 3 in local_cluster.status().registered_brokers
    finally:
        local_cluster.resume(3)
    assert ask_broker(local_cluster.broker_ports[3], timeout_s=10) is not None


def test_a_killed_broker_comes_back_on_its_port_once_its_old_session_has_ended(local_cluster: LocalCluster) -> None:
    ports, before = local_cluster.broker_ports, local_cluster.broker_pids
    local_cluster.kill(2)
    assert not local_cluster.status().running
    local_cluster.start_broker(2)
    assert local_cluster.status().running
    assert local_cluster.status().registered_brokers == (1, 2, 3)
    assert local_cluster.broker_ports == ports
    assert local_cluster.broker_pids[2] != before[2]


def test_a_cleanly_stopped_broker_is_gone_at_once_and_up_starts_only_that_one(local_cluster: LocalCluster) -> None:
    before = local_cluster.broker_pids
    local_cluster.stop_broker(1)
    assert local_cluster.status().registered_brokers == (2, 3)
    again = LocalCluster.up(local_cluster.home)
    assert again.status().running
    after = again.broker_pids
    assert {broker for broker in ALL if after[broker] != before[broker]} == {1}
    assert local_cluster.broker_pids == after


@pytest.mark.soak
def test_a_crashed_cluster_can_be_put_down_and_comes_up_again_with_its_data(cluster_home: Path) -> None:
    cluster = LocalCluster.up(cluster_home, brokers=1)
    cluster_id = cluster.cluster_id
    cluster.stop_zookeeper(now=True)
    cluster.kill(1)
    found = LocalCluster.find(cluster_home)
    assert found is not None
    assert not any(process.alive for process in found.status().processes)
    assert found.down() == ()
    assert LocalCluster.up(cluster_home, brokers=1).cluster_id == cluster_id


@pytest.mark.soak
def test_brokers_whose_zookeeper_died_are_put_down_soon_and_fresh_forgets_their_data(cluster_home: Path) -> None:
    cluster = LocalCluster.up(cluster_home, brokers=1)
    cluster_id = cluster.cluster_id
    cluster.stop_zookeeper(now=True)
    assert cluster.down() == ("broker-1",)
    assert not any(process.alive for process in cluster.status().processes)
    assert LocalCluster.up(cluster_home, brokers=1, fresh=True).cluster_id != cluster_id


def test_a_broker_that_does_not_start_shows_the_end_of_its_log_and_nothing_is_left_running(cluster_home: Path) -> None:
    with pytest.raises(LocalClusterError) as error:
        LocalCluster.up(cluster_home, brokers=1, broker_properties={"num.io.threads": "many"})
    message = str(error.value)
    assert "broker-1 ended while it started" in message
    assert str(cluster_home / "cluster" / "logs" / "broker-1.log") in message
    assert "Invalid value many for configuration num.io.threads" in message
    state = read_state(cluster_home / "cluster")
    assert state is not None
    assert [server.alive for server in state.servers] == [False, False]


def test_a_given_port_that_is_taken_is_named(cluster_home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LocalClusterError, match=f"port {port} of zookeeper is taken by another process"):
            LocalCluster.up(cluster_home, brokers=1, zookeeper_port=port)


def test_down_leaves_a_process_alone_that_only_has_the_pid_of_ours(cluster_home: Path, sleeper: ProcessMark) -> None:
    cluster = recorded(cluster_home, replace(sleeper, started="another time"))
    assert cluster.down() == ()
    assert sleeper.alive


def test_down_stops_a_cluster_of_which_only_a_part_was_ever_started(cluster_home: Path, sleeper: ProcessMark) -> None:
    assert recorded(cluster_home, sleeper).down() == ("broker-1",)
    assert not sleeper.alive


def test_down_ends_a_process_that_ignores_the_request_to_stop(cluster_home: Path, tmp_path: Path) -> None:
    deaf = spawn(
        ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"],
        log=tmp_path / "log", folder=tmp_path, environment=os.environ,
    )  # fmt: skip
    time.sleep(0.2)
    assert recorded(cluster_home, deaf).down() == ("broker-1",)
    assert not deaf.alive


def test_down_wakes_a_paused_process_so_that_it_can_stop(cluster_home: Path, sleeper: ProcessMark) -> None:
    os.kill(sleeper.pid, signal.SIGSTOP)
    assert stop([sleeper], grace_s=5) == []


def test_a_process_is_known_by_pid_and_start_time_from_any_process(sleeper: ProcessMark) -> None:
    script = f"from topicops_local.processes import mark_of; print(mark_of({sleeper.pid}).started)"
    seen = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == sleeper.started
    stop([sleeper], grace_s=5)
    assert mark_of(sleeper.pid) is None


def test_a_damaged_state_file_is_named_with_what_to_do(cluster_home: Path) -> None:
    (cluster_home / "cluster").mkdir(parents=True)
    state = cluster_home / "cluster" / "state.json"
    state.write_text("{")
    with pytest.raises(LocalClusterError, match=r"state\.json cannot be read: .* delete the file"):
        LocalCluster.find(cluster_home)
    state.unlink()


@pytest.mark.parametrize(
    ("up", "message"),
    [
        pytest.param(lambda home: LocalCluster.up(home, brokers=0), "0 brokers cannot be started", id="no broker"),
        pytest.param(
            lambda home: LocalCluster.up(home, broker_ports=[9]), "3 brokers need 3 ports", id="too few ports"
        ),
        pytest.param(
            lambda home: LocalCluster.up(home, broker_ports=[7, 8, 8]), "cannot have one port", id="one port twice"
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    cluster_home: Path, up: Callable[[Path], LocalCluster], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        up(cluster_home)
    assert LocalCluster.find(cluster_home) is None


def test_the_status_command_shows_processes_ports_brokers_and_controller(local_cluster: LocalCluster) -> None:
    arguments = ["status", "--home", str(local_cluster.home)]
    text = CliRunner().invoke(cli.app, arguments)
    shown = json.loads(CliRunner().invoke(cli.app, [*arguments, "--format", "json"]).stdout)
    assert text.exit_code == 0
    assert "registered brokers: 1, 2, 3" in text.stdout
    assert local_cluster.zookeeper_hosts in text.stdout
    assert [(process["role"], process["alive"]) for process in shown["processes"]] == [
        ("zookeeper", True), ("broker-1", True), ("broker-2", True), ("broker-3", True),
    ]  # fmt: skip
    assert shown["running"] is True
    assert shown["controller"] in (1, 2, 3)


@pytest.mark.soak
def test_the_commands_leave_the_cluster_running_between_them_and_keep_its_data(cluster_home: Path) -> None:
    script = "import sys; from topicops_local.local import app; app(sys.argv[1:])"

    def command(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments, "--home", cluster_home],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    first = command("up")
    assert "registered brokers: 1, 2, 3" in first
    assert command("down") == "Stopped zookeeper, broker-1, broker-2, broker-3.\n"
    assert command("down") == "No local cluster is running.\n"
    second = LocalCluster.up(cluster_home)
    assert f"cluster id:         {second.cluster_id}" in first
    assert f"bootstrap servers:  {second.bootstrap_servers}" in first


def test_commands_without_a_cluster_say_so(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli.app, ["status", "--home", str(tmp_path)])
    assert result.exit_code == 1
    assert "No local cluster was started here" in result.stdout
    shown = CliRunner().invoke(cli.app, ["status", "--home", str(tmp_path), "--format", "json"])
    assert json.loads(shown.stdout) == {"format_version": 1, "running": False}


def test_a_broker_whose_first_session_expired_on_a_busy_machine_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    ended = ["sh", "-c", "echo 'ERROR KeeperException$SessionExpiredException: Session expired for /brokers'"]
    first = ["broker-1"]

    def spawn_and_lose_the_first(
        command: Sequence[str], *, log: Path, folder: Path, environment: Mapping[str, str]
    ) -> ProcessMark:
        lost = log.stem in first
        if lost:
            first.remove(log.stem)
        return spawn(ended if lost else command, log=log, folder=folder, environment=environment)

    monkeypatch.setattr("topicops_local.cluster.spawn", spawn_and_lose_the_first)
    cluster = LocalCluster.up(tmp_path, brokers=1, progress=lines.append)
    try:
        assert "broker-1 ended with its session in ZooKeeper, and is started again" in lines
        assert cluster.status().registered_brokers == (1,)
    finally:
        cluster.down(now=True)

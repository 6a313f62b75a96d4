import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from topicops_local import local as cli
from topicops_local.cluster import LocalCluster


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

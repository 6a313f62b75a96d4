"""The Spark server of this machine: started once, used by its token, stopped by its pid."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from topicops import cli
from topicops.edges.processes import ProcessMark
from topicops.features.sandbox.edges.spark_server import SparkServer
from topicops.model.errors import LocalClusterError, UsageError

TOKEN = "hunter2SECRET"


@pytest.fixture
def ended(tmp_path: Path) -> SparkServer:
    """The record of a server that has ended."""
    folder = tmp_path / "spark"
    folder.mkdir()
    record = (
        f'{{"process": {{"pid": 999999999, "started": "never"}}, "port": 1, "token": "{TOKEN}", "format_version": 1}}'
    )
    (folder / "server.json").write_text(record)
    server = SparkServer.find(tmp_path)
    assert server is not None
    return server


def test_where_none_was_started_there_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert SparkServer.find(tmp_path) is None
    assert cli.run(["local", "spark", "status", "--home", str(tmp_path)]) == 1
    assert cli.run(["local", "spark", "down", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        "No Spark server was started here: topicops local spark up\nNo Spark server is running.\n"
    )


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_output_shows_the_token(
    ended: SparkServer, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended.address == f"sc://localhost:1/;token={TOKEN}"
    assert cli.run(["local", "spark", "status", "--home", str(tmp_path), "--format", form]) == 1
    shown = capsys.readouterr()
    assert "spark/address" in shown.out
    assert TOKEN not in shown.out + shown.err + repr(ended)


def test_a_record_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark/server.json").write_text("{")
    with pytest.raises(LocalClusterError, match=r"server.json cannot be read: .*; end its Java process"):
        SparkServer.find(tmp_path)


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        taken = other.getsockname()[1]
        with pytest.raises(UsageError, match="is taken by another process"):
            SparkServer.spawn(tmp_path, port=taken)
    assert SparkServer.find(tmp_path) is None


def test_another_process_with_the_pid_is_not_stopped(tmp_path: Path) -> None:
    server = SparkServer(folder=tmp_path, process=ProcessMark(os.getpid(), "another start"), port=1, address="")
    assert not server.stop()


PROGRAM = """
from topicops.edges.spark.session import reads_files_here, spark_session
with spark_session() as spark:
    print(spark.range(5).count(), reads_files_here(spark))
"""


def printed(address: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "TOPICOPS_SPARK": address},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.soak
def test_a_server_is_started_once_answers_to_its_token_alone_and_is_stopped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["local", "spark", "up", "--home", str(tmp_path)]) == 0
    server = SparkServer.find(tmp_path)
    assert server is not None
    try:
        assert cli.run(["local", "spark", "up", "--home", str(tmp_path)]) == 0
        assert SparkServer.find(tmp_path) == server
        with pytest.raises(UsageError, match=f"runs on port {server.port}"):
            SparkServer.spawn(tmp_path, port=server.port + 1)

        assert printed(server.address_file.read_text().strip()).stdout == "5 True\n"
        stranger = printed(f"sc://localhost:{server.port}/;token=wrong-token")
        assert "TopicopsError: TOPICOPS_SPARK=sc://localhost" in stranger.stderr
        assert "Invalid authentication token; check TOPICOPS_SPARK" in stranger.stderr
        assert "wrong-token" not in stranger.stderr

        for name in ("address", "server.json"):
            assert stat.S_IMODE((server.folder / name).stat().st_mode) == 0o600
        process = psutil.Process(server.process.pid)
        token = server.address.rpartition("=")[2]
        assert token not in " ".join(process.cmdline())
        assert {c.laddr.ip.removeprefix("::ffff:") for c in process.net_connections() if c.status == "LISTEN"} == {
            "127.0.0.1"
        }
        assert "Mapped dynamic region" in (server.folder / "scratch/archive.log").read_text()
    finally:
        assert cli.run(["local", "spark", "down", "--home", str(tmp_path)]) == 0
    assert not server.process.alive
    assert sorted(file.name for file in server.folder.iterdir()) == ["lock", "server.log"]
    shown = capfd.readouterr()
    assert token not in shown.out + shown.err

"""What Airflow on this machine leaves on its disk, and what becomes of its services and its database."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from topicops.features.shared.airflow_client import AirflowError
from topicops_local import airflow as on_this_machine
from topicops_local.airflow import CONN, WAIT_FOR_WRITER_S, LocalAirflow, airflow_variables, sqlite_address
from topicops_local.processes import ProcessMark, kill, spawn, wait_gone


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "of an earlier start, readable by all"])
def test_the_file_of_passwords_is_never_readable_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    file = tmp_path / "passwords.json"
    if is_there:
        file.write_text("{}", encoding="utf-8")
        file.chmod(0o644)
    before = os.umask(0)
    try:  # what is put right later was open for a moment
        monkeypatch.setattr(os, "chmod", lambda *_, **__: None)
        variables = airflow_variables(tmp_path, dags=tmp_path, port=1, password="tests")
    finally:
        os.umask(before)

    assert variables["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"] == str(file)
    assert json.loads(file.read_text(encoding="utf-8")) == {"admin": "tests"}
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_service_that_ended_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()

    def service(name: str, command: str) -> ProcessMark:
        log = tmp_path / "logs" / f"{name}.log"
        return spawn(["sh", "-c", command], log=log, folder=tmp_path, environment=os.environ)

    processes = {"scheduler": service("scheduler", "echo locked"), "triggerer": service("triggerer", "sleep 60")}
    airflow = LocalAirflow(folder=tmp_path, port=1, username="", password="", processes=processes, variables={})
    try:
        assert not wait_gone([processes["scheduler"]], timeout_s=10)
        assert airflow.ended() == {"scheduler": tmp_path / "logs" / "scheduler.log"}
        with pytest.raises(AirflowError, match=r"scheduler has ended; the end of .*scheduler\.log:\n *locked"):
            airflow.require_alive()
    finally:
        kill([processes["triggerer"]])


@pytest.mark.parametrize("driver", ["sqlite", "sqlite+aiosqlite"])
def test_who_finds_the_database_locked_waits_for_minutes_and_not_for_seconds(tmp_path: Path, driver: str) -> None:
    from sqlalchemy.engine import make_url

    url = make_url(sqlite_address(tmp_path).replace("sqlite:", f"{driver}:"))
    _, arguments = url.get_dialect()().create_connect_args(url)

    assert url.database == str(tmp_path / "airflow.db")
    assert arguments["timeout"] == WAIT_FOR_WRITER_S >= 60


def test_a_new_database_is_migrated_once_for_each_release_and_one_with_runs_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrated: list[str] = []

    def migrate(folder: Path, variables: Mapping[str, str], timeout_s: float) -> None:
        migrated.append(folder.name)
        with closing(sqlite3.connect(folder / "airflow.db")) as database:
            database.execute("create table if not exists runs (id)")

    def runs_after_start(folder: str) -> list[tuple[int]]:
        (tmp_path / folder).mkdir(exist_ok=True)
        on_this_machine._make_database(tmp_path / folder, {CONN: sqlite_address(tmp_path / folder)}, 1.0)
        with closing(sqlite3.connect(tmp_path / folder / "airflow.db")) as database, database:
            database.execute("insert into runs values (1)")
            return database.execute("select id from runs").fetchall()

    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(on_this_machine, "_migrate", migrate)
    assert [runs_after_start(folder) for folder in ("first", "second")] == [[(1,)], [(1,)]]
    assert migrated == ["first"]
    assert runs_after_start("second") == [(1,), (1,)]
    monkeypatch.setattr(on_this_machine, "_releases", lambda: "another")
    assert runs_after_start("third") == [(1,)]
    assert migrated == ["first", "second", "third"]

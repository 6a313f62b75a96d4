"""Where a run keeps its tables: in its own folder, or below TOPICOPS_TABLES."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from fixtures.simulated import Simulated
from topicops.edges.home.artifacts import runs_folder
from topicops.edges.tables.table_folder import TableFolder
from topicops.flow import single_steps
from topicops.flow.runs import run as run_module
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.errors import ArtifactError

SETTING = "TOPICOPS_TABLES"


def read(simulated: Simulated, run_id: str) -> EnvironmentRun:
    simulated.workspace.write_environment()
    run = open_run(environment="local", topics=Path("topics"), group="topic pipeline", run_id=run_id)
    single_steps.validate(run, as_tables=True)
    single_steps.snapshot(run)
    return run


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://{}/"])
def test_tables_are_below_the_setting_by_group_and_run_and_the_run_reads_them_there(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str
) -> None:
    monkeypatch.setenv(SETTING, form.format(tmp_path / "all-tables"))
    simulated.workspace.topic("orders")
    simulated.cluster.put_topic("orders", (1, 2, 3))

    run = read(simulated, "manual:1")

    folder = tmp_path / "all-tables" / "topic%20pipeline" / "manual%3A1"
    assert {path.stem for path in folder.iterdir()} >= {"desired", "partitions", "topics"}
    assert not run.store.path("tables").exists()
    assert [*run.read_desired().topics] == ["orders"]
    assert run.read_live().topics["orders"].assignment == {0: (1, 2, 3)}


def test_another_setting_than_the_run_began_with_is_refused(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path / "here"))
    run = read(simulated, "1")
    for other in (str(tmp_path / "there"), ""):
        monkeypatch.setenv(SETTING, other)
        with pytest.raises(
            ArtifactError, match=r"/here/topic%20pipeline/1: .* TOPICOPS_TABLES now names another place"
        ):
            run.read_live()


def test_the_tables_of_old_runs_are_removed_with_them(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path / "all"))
    old = read(simulated, "old").store.folder
    long_ago = (run_module.now() - timedelta(days=91)).timestamp()
    last_look = tmp_path / "home/runs/.pruned"
    for path in (*old.iterdir(), old, last_look):
        os.utime(path, (long_ago, long_ago))

    read(simulated, "new")

    assert not old.exists()
    assert [path.name for path in (tmp_path / "all" / "topic%20pipeline").iterdir()] == ["new"]


def test_the_tables_of_a_run_of_many_environments_are_below_that_run(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path / "all"))
    run = open_run(environment="local", topics=Path("topics"), group="cli", run_id="1", part="local")
    simulated.workspace.write_environment()

    single_steps.validate(run, as_tables=True)

    assert run.store.folder == tmp_path / "home/runs/cli/1/local"
    assert (tmp_path / "all/cli/1/local/desired.parquet").is_file()


def test_old_runs_stay_while_their_tables_cannot_be_removed(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = runs_folder(tmp_path / "home", "cli", "old")
    old.mkdir(parents=True)
    os.utime(old, (0, 0))
    monkeypatch.setenv(SETTING, "nowhere://tests:s3cret@store/tables")

    with pytest.raises(ArtifactError, match=r"^nowhere://store/tables: no place for tables: "):
        read(simulated, "new")

    assert old.is_dir()
    assert "so 1 old runs are not removed" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    "uri",
    [
        "nowhere://key:s3cret@bucket/x",
        "s3://key:s3cret@bucket/x?unknown=s3cret",
        "s3://key:s3/cret@bucket/x y?password=s3cret",
        "s3://key:s3cret@",
        "relative/path",
    ],
)
def test_an_address_that_cannot_be_used_is_one_sentence_without_a_secret(uri: str) -> None:
    with pytest.raises(ArtifactError, match=r": no place for tables: .") as caught:
        TableFolder.at(uri)
    assert "cret" not in str(caught.value)
    assert "\n" not in str(caught.value)

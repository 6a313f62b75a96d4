"""What stands for ``--environment`` and ``--topics`` where a command line leaves them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, topic, write
from topicops.cli import run
from topicops.cli.shared_options import all_environments

EXPLAIN = ["explain", "clicks"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with one environment, ``local``, and one topic."""
    (tmp_path / ".git").mkdir()
    write(tmp_path / "topics", {"web/clicks.yaml": topic("clicks")})
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOPICOPS_ENVIRONMENT", raising=False)
    return tmp_path


@pytest.fixture
def two(folder: Path) -> None:
    text = HEAD.format(kind="Environment", name="prod") + (
        "  cluster: {class: sandbox, zookeeper: {hosts: zk}, kafka: {bootstrapServers: b}}\n"
        "  defaults: {partitions: 8, replicationFactor: 3}\n"
    )
    (folder / "topics/environments/prod.yaml").write_text(text)


def test_the_only_environment_needs_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(EXPLAIN) == 0
    assert capsys.readouterr().out.startswith("clicks in local,")


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("command", [EXPLAIN, ["plan"], ["verify"], ["doctor"], ["drift"], ["list"]], ids=" ".join)
def test_with_several_environments_one_sentence_lists_them(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == 1
    expected = "topicops: name one environment with -e, or in TOPICOPS_ENVIRONMENT: local, prod\n"
    assert capsys.readouterr() == ("", expected)


@pytest.mark.usefixtures("two")
def test_a_variable_names_the_environment_and_the_command_line_wins(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_ENVIRONMENT", "prod")
    assert run(EXPLAIN) == 0
    assert capsys.readouterr().out.startswith("clicks in prod,")
    assert run([*EXPLAIN, "-e", "local"]) == 0
    assert capsys.readouterr().out.startswith("clicks in local,")
    assert all_environments(None, Path("topics")) == ["prod"]
    assert all_environments(["local"], Path("topics")) == ["local"]


def test_without_an_environment_or_without_a_folder_the_sentence_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "topics/environments/local.yaml").unlink()
    assert run(EXPLAIN) == 1
    assert "topics/environments: no environment has a file there" in capsys.readouterr().err
    assert run([*EXPLAIN, "--topics", "other"]) == 1
    assert "other: no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("standing", ["services/web", "topics", "topics/web"])
def test_the_folder_of_specs_is_found_from_any_folder_of_the_repository(
    folder: Path, standing: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / standing).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder / standing)
    assert run(EXPLAIN) == 0
    place = capsys.readouterr().out.splitlines()[0].partition("(")[2].partition(":")[0]
    assert (folder / standing / place).resolve() == folder / "topics/web/clicks.yaml"


def test_a_folder_that_is_named_is_not_searched_for(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a").mkdir()
    monkeypatch.chdir(folder / "a")
    assert run([*EXPLAIN, "--topics", "topics"]) == 1
    assert (
        "topics: no such folder, so there are no topics here yet: start with `topicops init`" in capsys.readouterr().err
    )

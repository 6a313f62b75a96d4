"""What a command imports on its way, and that a name which is looked up late is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from topicops import cli, flow
from topicops.cli.output import shown_path

ROOT_HELP = "Kafka topics as reviewed YAML"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_is_there_when_it_is_named_alone(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([name, "--help"]) == 0
    assert f" {name} [" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [["--help"], ["-v", "--help"], ["-h", "plan"], ["--verbose", "-h", "plan"]],
    ids=" ".join,
)
def test_help_before_a_command_is_about_all_of_them(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(words) == 0
    shown = capsys.readouterr().out
    assert ROOT_HELP in shown
    assert [name for name in cli.COMMANDS if f" {name} " not in shown] == []


def test_a_command_is_found_behind_the_options_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--verbose", "code", "TOP501"]) == 0
    assert "TOP501" in capsys.readouterr().out


def test_an_unknown_command_is_an_error_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["plam", "--environment", "prod"]) == 1
    assert capsys.readouterr().err.startswith("topicops: No such command 'plam'.")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["plan", "--env", "x"], "No such option: --env (did you mean --environment?)"),
        (["local", "up", "--zoo", "x"], "No such option: --zoo (did you mean --zookeeper-port?)"),
        (["topics", "--under", "x"], "(did you mean --under-replicated or --under-min-isr?)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_shortened_option_is_answered_with_the_whole_one(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(words) == 1
    assert sentence in capsys.readouterr().err


def test_the_folder_of_a_run_is_named_from_here_or_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    assert shown_path(tmp_path / "here/.topicops/runs") == ".topicops/runs"
    assert shown_path(tmp_path / "elsewhere") == str(tmp_path / "elsewhere")
    assert shown_path(Path("../elsewhere")) == str(tmp_path / "elsewhere")


@pytest.mark.parametrize("name", flow.__all__)
def test_each_name_that_flow_offers_is_in_one_of_its_modules(name: str) -> None:
    assert getattr(flow, name) is not None


def test_a_name_that_flow_does_not_offer_is_missing_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="no attribute 'aply'"):
        getattr(flow, "aply")  # noqa: B009 - a plain attribute would be an error of the type checker


def test_planning_loads_nothing_that_only_other_commands_need() -> None:
    program = (
        "import sys; from topicops.cli import run; run(['plan', '--environment', 'x']); "
        "print(*[name for name in sys.modules if name.startswith('topicops.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert {"topicops.cli.cluster.plan", "topicops.flow.planning"} <= loaded
    assert loaded.isdisjoint(
        {
            "topicops.cli.cluster.apply",
            "topicops.edges.kafka.clients",
            "topicops.edges.local.cluster",
            "topicops.flow.applying",
            "topicops.flow.inspecting",
            "topicops.flow.verifying",
        }
    )

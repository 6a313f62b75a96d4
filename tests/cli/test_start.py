"""What a command imports on its way, and that a name which is looked up late is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from topicops import cli
from topicops.cli.output import shown_path

ROOT_HELP = "Kafka topics as reviewed YAML"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_is_there_when_it_is_named_alone(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([name, "--help"]) == 0
    assert f" {name} [" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["--help"], ["-v", "--help"], ["-h", "plan"], ["--verbose", "-h", "plan"]], ids=" ".join
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


PROGRAM = [sys.executable, "-m", "topicops"]


@pytest.mark.parametrize("words", [["code"], ["--help"]], ids=" ".join)
def test_a_reader_that_goes_away_is_no_error(words: list[str]) -> None:
    with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        assert (started.stderr.read(), started.wait(60)) == ("", 0)


def test_a_command_whose_reader_went_away_ends_as_it_would_have(tmp_path: Path) -> None:
    (tmp_path / "topics" / "web").mkdir(parents=True)
    (tmp_path / "topics" / "web" / "a.yaml").write_text("kind: Topic\n")
    with subprocess.Popen([*PROGRAM, "validate"], cwd=tmp_path, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.close()
        assert started.wait(60) == 1


def test_ctrl_c_while_commands_are_imported_is_one_line() -> None:
    program = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'topicops.cli': raise KeyboardInterrupt\n"
        "from topicops.__main__ import main\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (130, "topicops: interrupted\n")


def test_the_shell_completes_commands_and_options() -> None:
    def completed(line: str) -> list[str]:
        words = line.split(" ")
        asked = {"_TOPICOPS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        program = "import sys; sys.argv = ['topicops']; from topicops.__main__ import main; main()"
        ended = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **asked}, capture_output=True, text=True, timeout=60
        )
        return ended.stdout.split()

    assert completed("topicops pl") == ["plan"]
    assert "--environment" in completed("topicops plan --env")


def test_with_json_an_error_is_json_on_stdout_and_its_text_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["drift", "--environment", "x", "--format", "json"]) == 1

    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert err.endswith(f"topicops: {error['message']}\n")
    assert (error["exit_status"], error["code"], error["diagnostics"]) == (1, None, [])


def test_with_json_problems_of_files_are_diagnostics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = Path("topics/environments/local.yaml")
    environment.parent.mkdir(parents=True)
    environment.write_text("kind: Environment\n", encoding="utf-8")

    assert cli.run(["drift", "--environment", "local", "--format=json"]) == 1

    found = json.loads(capsys.readouterr().out)["error"]["diagnostics"]
    assert {problem["file"] for problem in found} == {"topics/environments/local.yaml"}


def test_planning_loads_nothing_that_only_other_commands_need() -> None:
    program = (
        "import sys; from topicops.cli import run; run(['plan', '--environment', 'x']); "
        "print(*[name for name in sys.modules if name.startswith('topicops')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert {"topicops.cli.commands", "topicops.flow.planning"} <= loaded
    assert loaded.isdisjoint(
        {
            "topicops.cli.apply",
            "topicops.edges.kafka.clients.confluent",
            "topicops.edges.kafka.clients.kafka_python_inside",
            "topicops_local",
            "topicops.flow.applying",
            "topicops.flow.verifying",
        }
    )

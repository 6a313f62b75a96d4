"""What a command imports on its way, and that a name which is looked up late is there."""

from __future__ import annotations

import json
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
    assert {name for name in cli.COMMANDS if f" {name} " not in shown} == cli.PANELS[cli.HIDDEN].keys()
    assert [panel for panel in cli.PANELS if f"─ {panel} ─" not in shown and panel] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("code v08", "explain v08"),
        ("show no.json", "plan no.json"),
        ("topics --help", "list --help"),
        ("-v dags", "init --airflow -"),
        ("dags --write topicops", "init --airflow topicops"),
        ("history --help", "audit --help"),
        ("history topic --help", "audit past --help"),
        ("history export --help", "audit export --help"),
    ],
)
def test_a_name_of_before_works_as_the_new_one(
    old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topicops").mkdir()
    (tmp_path / "topicops/topicops_dags.py").write_text("# mine\n")
    said = [(cli.run(line.split()), *capsys.readouterr()) for line in (old, new)]
    assert said[0] == said[1]
    assert "No such" not in said[0][2]


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("delete a", "topicops retire TOPIC --reason TEXT"),
        ("rename a b", "topicops new TOPIC --owner OWNER"),
        ("status", "topicops verify"),
        ("apply --dry-run", "topicops plan"),
    ],
)
def test_a_word_of_other_programs_leads_to_the_command(
    line: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(line.split()) == 1
    assert f"`{advice}`" in capsys.readouterr().err


WORDS = {"explain": ["a"], "new": ["a", "--owner", "o"], "audit": ["quality"], "ci": ["plan"], "undo": ["a"]}


@pytest.mark.parametrize("name", [name for name in cli.COMMANDS if name not in cli.NEEDS_NO_TOPICS])
def test_in_an_empty_folder_a_command_leads_to_init(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run([name, *WORDS.get(name, [])]) == 1
    assert "`topicops init`" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["audit runs", "audit topic a", "audit run 1", "audit verify"])
def test_an_audit_of_nothing_leads_to_init_where_there_are_no_topics(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(line.split()) == 0
    assert "`topicops init`" in capsys.readouterr().err
    (tmp_path / "topics/environments").mkdir(parents=True)
    assert cli.run(line.split()) == 0
    assert "`topicops init`" not in capsys.readouterr().err


def test_a_command_is_found_behind_the_options_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--verbose", "explain", "TOP501"]) == 0
    assert "TOP501" in capsys.readouterr().out


def test_an_unknown_command_is_an_error_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["plam", "--environment", "prod"]) == 1
    assert capsys.readouterr().err.startswith("topicops: No such command 'plam'.")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["plan", "--env", "x"], "No such option: --env (did you mean --environment?)"),
        (["local", "up", "--zoo", "x"], "No such option: --zoo (did you mean --zookeeper-port?)"),
        (["list", "--under", "x"], "(did you mean --under-replicated or --under-min-isr?)"),
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


@pytest.mark.parametrize("words", [["explain"], ["--help"]], ids=" ".join)
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

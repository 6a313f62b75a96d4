"""What the shell offers at a Tab, and what a Tab costs."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.made_parts import completion
from topicops.completion import TABLE

MOST_CPU_S = 0.25
TOPIC = "metadata: {name: x, owner: team-web}\n"
FILES = {
    "topics/environments/prod.yaml": "",
    "topics/environments/prod.exceptions.yaml": "",
    "topics/environments/staging.yaml": "",
    "topics/profiles/durable.yaml": "",
    "topics/web/web.clicks.yaml": TOPIC,
    "topics/payments/payments.orders.yaml": 'metadata:\n  owner: "team-pay"  # both\n',
    ".topicops/runs/cli/20260131T235959Z-1a2b3c/plan.json": "",
}
OFFERED = [
    pytest.param("topicops re", ["rebalance", "rehearse", "retire"], id="command"),
    pytest.param("topicops -v audit ex", ["export"], id="command of a group"),
    pytest.param("topicops plan --det", ["--detailed-exitcode"], id="option"),
    pytest.param("topicops plan --format ", ["json", "markdown", "text"], id="choice"),
    pytest.param("topicops plan --environment ", ["prod", "staging"], id="environment"),
    pytest.param("topicops plan --environment = s", ["staging"], id="environment behind a sign that bash splits at"),
    pytest.param("topicops plan -e prod -e s", ["staging"], id="environment again"),
    pytest.param("topicops why w", ["web.clicks"], id="topic"),
    pytest.param("topicops new x --owner ", ["team-pay", "team-web"], id="owner"),
    pytest.param("topicops new x --profile ", ["durable"], id="profile"),
    pytest.param("topicops undo 2", ["20260131T235959Z-1a2b3c"], id="run"),
    pytest.param("topicops explain V0", [f"V0{n}" for n in range(1, 10)], id="code"),
    pytest.param("topicops explain p", ["payments.orders"], id="topic or code"),
    pytest.param("topicops why a --topics other ", [], id="a second topic, in a folder that is not there"),
    pytest.param("topicops validate t", [], id="a file, which the shell completes"),
    pytest.param("topicops no 'such", [], id="no command"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOPICOPS_HOME", raising=False)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def tab(line: str, shell: str = "bash", **more: str) -> subprocess.CompletedProcess[str]:
    asked = {"_TOPICOPS_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line, "COMP_WORDS": line}
    place = {"COMP_CWORD": str(line.count(" "))}
    return subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['topicops']; from topicops.__main__ import main; main()"],
        env={**os.environ, **asked, **place, **more},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(("line", "words"), OFFERED)
def test_the_shell_offers_what_can_follow_and_at_little_cost(line: str, words: list[str], folder: Path) -> None:
    ended = tab(line)
    assert (ended.stdout.splitlines(), ended.stderr) == (words, "")
    assert min(cpu_s(line) for _ in range(3)) <= MOST_CPU_S


def cpu_s(line: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    tab(line)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_owners_are_those_of_the_file_of_owners_where_there_is_one(folder: Path) -> None:
    (folder / "topics/owners.yaml").write_text("spec:\n  owners:\n    - owner: a\n    - {owner: b, topics: []}\n")
    assert tab("topicops import --owner ").stdout.split() == ["a", "b"]


def test_each_shell_is_answered_in_its_own_form(folder: Path) -> None:
    assert tab("topicops plan -e ", "zsh").stdout == '_arguments \'*: :(("prod"\n"staging"))\'\n'
    assert tab("topicops validate ", "zsh").stdout == "_files\n"
    assert tab("topicops plan -e ", "fish", _TYPER_COMPLETE_FISH_ACTION="get-args").stdout == "prod\nstaging\n"
    asked = {"_TYPER_COMPLETE_FISH_ACTION": "is-args"}
    assert [tab(f"topicops {line}", "fish", **asked).returncode for line in ("pl", "validate ")] == [0, 1]
    assert "plan:::" in tab("topicops pl", "powershell").stdout
    assert "complete_bash" in tab("", "bash", _TOPICOPS_COMPLETE="source_bash").stdout


def test_the_table_is_made_from_the_program() -> None:
    assert json.loads(TABLE.read_text(encoding="utf-8")) == json.loads(completion())

"""The exit status is the command's, whatever becomes of its streams; a character that a stream lacks is escaped."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.spec_folder import topic, write
from topicops import cli

PROGRAM = f"'{sys.executable}' -m topicops"
NOT_THERE = "topicops: stdout cannot be written ({}), so the result is not there\n"
FULL, CLOSED = NOT_THERE.format("No space left on device"), NOT_THERE.format("it is closed")
TOPIC = topic("clicks", metadata=", description: 'Grüße, 5 €, 🎉'")
EXPLAIN = "explain clicks --topics . --environment local"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("specs")
    write(folder, {"web/clicks.yaml": TOPIC})
    return folder


def typed(line: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"{PROGRAM} {line}"],
        cwd=folder, env=os.environ | variables, capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("code TOP501 >&- 2>&-", 0),
        ("code TOP501 >/dev/full 2>&1", 0),
        ("plan --help >/dev/full", 0),
        ("validate nowhere >&-", 1),
        ("validate nowhere 2>&-", 1),
        ("validate nowhere 2>/dev/full", 1),
        ("plam <&- >&- 2>&-", 1),
    ],
)
def test_a_stream_that_is_full_or_closed_changes_no_status(line: str, status: int, folder: Path) -> None:
    assert typed(line, folder).returncode == status


@pytest.mark.parametrize(("streams", "said"), [(">/dev/full", FULL), (">&-", CLOSED), ("| true", "")])
def test_a_result_that_stdout_did_not_take_is_said_in_one_line(streams: str, said: str, folder: Path) -> None:
    assert typed(f"code TOP501 {streams}", folder).stderr == said


def test_a_file_that_may_grow_no_further_is_said_too(tmp_path: Path) -> None:
    limited = ["bash", "-c", f"ulimit -f 1; {PROGRAM} code >listed"]
    ended = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, NOT_THERE.format("File too large"))
    assert (tmp_path / "listed").stat().st_size == 1024


def test_no_file_of_the_run_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    program = (
        "import os; from topicops.standard_streams import make_unfailing; make_unfailing(); "
        "file = os.open('opened', os.O_CREAT | os.O_WRONLY); os.write(2, b'lost'); os.write(file, str(file).encode())"
    )
    subprocess.run(["bash", "-c", '"$0" -c "$1" <&- >&- 2>&-', sys.executable, program], cwd=tmp_path, check=True)
    assert (tmp_path / "opened").read_text() == "3"


ASCII = [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]


@pytest.mark.parametrize("variables", ASCII, ids=["of Python", "of the system"])
def test_what_a_stream_of_ascii_cannot_take_is_escaped(variables: dict[str, str], folder: Path) -> None:
    escaped = r"Gr\u00fc\u00dfe, 5 \u20ac, \ud83c\udf89"

    text, helped = typed(EXPLAIN, folder, **variables), typed("explain --help", folder, **variables)
    assert (text.returncode, text.stderr, escaped in text.stdout) == (0, "", True)
    assert (helped.returncode, helped.stderr, helped.stdout.isascii()) == (0, "", True)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "no memory or no thread is left for this command; raise the container's limit"),
        (RuntimeError("can't start new thread"), "no memory or no thread is left for this command"),
        (OSError(errno.EMFILE, "Too many open files"), "this command may open no more files; raise ulimit -n"),
        (RuntimeError("odd"), "internal error: RuntimeError: odd; run with --verbose to see where"),
    ],
    ids=["memory", "threads", "files", "other"],
)
def test_what_the_surroundings_do_not_give_is_named(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli, "_command", lambda _: failing)
    assert cli.run(["plan"]) == 1
    assert capsys.readouterr().err.startswith(f"topicops: {said}")


@pytest.mark.parametrize(("code", "status"), [(None, 0), (0, 0), (143, 143), ("the demo ended", 1)])
def test_a_command_that_ends_the_process_decides_its_status(
    code: str | int | None, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(*_: object, **__: object) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(cli, "_command", lambda _: ended)
    assert cli.run(["demo"]) == status
    assert capsys.readouterr().err == ("topicops: the demo ended\n" if status == 1 else "")

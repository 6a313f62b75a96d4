"""A value that is read without pydantic is what typer makes of it, and what is wrong with another is said as before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.core import TyperArgument, TyperOption

import topicops.cli  # noqa: F401 - it lets typer read plain values so

app = typer.Typer()


@app.command()
def command(
    paths: Annotated[list[Path] | None, typer.Argument()] = None,
    text: str | None = None,
    word: Literal["a", "b"] = "a",
    path: Path = Path("topics"),
    texts: Annotated[list[str] | None, typer.Option("--each")] = None,
    number: int = 1,
    flag: bool | None = None,
) -> None:
    raise Taken(paths, text, word, path, texts, number, flag)


class Taken(Exception):  # noqa: N818 - it is an answer
    pass


def taken(line: str) -> Any:
    try:
        typer.main.get_command(app)(line.split(" ") if line else [], standalone_mode=False)
    except Taken as found:
        return found.args
    except typer.exceptions.TyperException as error:
        return error.format_message()


LINES = [
    "",
    "one two",
    ".. /dev/null no/such",
    "--text x",
    "--text ",
    "--word b",
    "--word c",
    "--word B",
    "--path /dev/null",
    "--path ",
    "--each x --each y",
    "--number 07",
    "--number x",
    "--flag",
    "--no-flag",
]


@pytest.mark.parametrize("line", LINES)
def test_a_value_is_taken_as_typer_takes_it(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = taken(line)
    for kind in (TyperArgument, TyperOption):
        monkeypatch.delattr(kind, "get_runtime_param")
    assert plain == taken(line)


def test_a_path_that_cannot_be_read_is_typers_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "is not readable" in taken("--path /dev/null")

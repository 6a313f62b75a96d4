"""Each command that a page shows can be typed: its program, options and arguments are real ones."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import dropwhile
from pathlib import Path
from typing import Any

import pytest
import typer
from benchmarks.__main__ import BENCHMARKS

from fixtures.page_commands import (
    BY_CI,
    NOT_TYPED,
    PAGES,
    ROOT,
    advised_spans,
    command_spans,
    name_of,
    typed_lines,
    without_comment,
)
from fixtures.page_stories import STORIES
from topicops.cli import app

PROGRAM = typer.main.get_command(app)
OTHER_PROGRAMS = {
    *("cd", "docker", "export", "find", "git", "helm", "jq", "make", "mkdir", "pip"),
    *("python", "sbin/start-connect-server.sh", "spark-pipelines"),
}
"""What the pages type beside topicops."""
MAKE_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def parts_of(page: Path) -> list[str]:
    """The commands of the lines, of which some have two."""
    return [part for line in typed_lines(page) for part in line.split(" && ")]


def command_of(words: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that the words begin with, and the words behind its name. Raises ``KeyError``."""
    command, rest = PROGRAM, list(words)
    while hasattr(command, "commands"):
        options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        rest = list(dropwhile(options.__contains__, rest))
        if not rest:
            break
        command = command.commands[rest.pop(0)]
    return command, rest


def problem_of(line: str, *, name_suffices: bool = False) -> str | None:
    """Why topicops would not take the line; a word in capitals or in brackets is an argument.

    Args:
        name_suffices: The name of a command alone is right: a sentence speaks of the command.
    """
    words = shlex.split(re.sub(r" (…|\.\.\.)$", "", line), comments=True)[1:]
    try:
        command, rest = command_of([word.strip("[]") for word in words])
        if rest or not (name_suffices or command is PROGRAM):
            command.make_context(command.name, rest)
    except KeyError as error:
        return f"{error} is no command"
    except typer.exceptions.TyperException as error:
        return error.format_message()
    return None


@pytest.mark.parametrize(
    ("line", "name_suffices", "problem"),
    [
        pytest.param("topicops plan --environment E  # what would change", False, None, id="right"),
        pytest.param("topicops --verbose …", True, None, id="an option before any command"),
        pytest.param("topicops validate [PATHS]", False, None, id="an argument that may be left out"),
        pytest.param("topicops spark archive", False, None, id="three words"),
        pytest.param("topicops retire", True, None, id="a name alone, in a sentence"),
        pytest.param("topicops retire", False, "Missing argument 'TOPIC...'.", id="a name alone, to be typed"),
        pytest.param("topicops retire a", True, "Missing option '--reason'.", id="a missing option"),
        pytest.param(
            "topicops plan --yes",
            True,
            "No such option: --yes (Possible options: --states)",
            id="an option of another command",
        ),
        pytest.param("topicops drift E", True, "Got unexpected extra argument(s) (E)", id="one word too many"),
        pytest.param("topicops drift --since", True, "Option '--since' requires an argument.", id="no value"),
        pytest.param("topicops plna", True, "'plna' is no command", id="a misspelt command"),
    ],
)
def test_what_is_wrong_with_a_line_is_found(line: str, name_suffices: bool, problem: str | None) -> None:
    assert problem_of(line, name_suffices=name_suffices) == problem


def test_topicops_takes_each_command_that_a_text_of_the_program_advises() -> None:
    """What fills a gap of the text is an argument."""
    advised = advised_spans()
    assert {"topicops init", "topicops retire TOPIC --reason TEXT", "topicops plan --out X"} <= advised
    problems = {span: problem_of(span, name_suffices=True) for span in advised}
    assert {span: problem for span, problem in problems.items() if problem} == {}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_topicops_takes_each_line_and_span_of_the_page(page: Path) -> None:
    typed = {part: problem_of(part) for part in parts_of(page) if part.startswith("topicops ")}
    spans = {span: problem_of(span, name_suffices=True) for span in command_spans(page, "topicops")}
    assert {line: problem for line, problem in (spans | typed).items() if problem} == {}


def test_the_other_programs_that_the_pages_type_are_those_that_are_known() -> None:
    programs = {part.split()[0] for page in PAGES for part in parts_of(page)}
    assert programs == {"topicops", *OTHER_PROGRAMS}


def test_a_block_has_a_language_unless_it_is_typed() -> None:
    fences = {
        fence for page in PAGES for fence in re.findall(r"^ *```.*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert fences == {"```", "```ini", "```json", "```python", "```sql", "```text", "```yaml"}


def test_each_line_of_a_page_has_a_story_that_types_it_or_a_reason_why_none_does() -> None:
    assert {name_of(page) for page in PAGES if set(typed_lines(page)) - NOT_TYPED.keys()} <= STORIES.keys()


def test_each_line_that_no_story_types_is_on_a_page_and_its_reason_is_true() -> None:
    assert NOT_TYPED.keys() <= {line for page in PAGES for line in typed_lines(page)}
    named = {path for reason in NOT_TYPED.values() for path in re.findall(r"\S+/\S+", reason)}
    assert {path for path in named if not (ROOT / path).exists()} == set()
    run = {without_comment(line).split(" <")[0] for line in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()}
    assert {line for line, reason in NOT_TYPED.items() if reason == BY_CI} <= run


def test_each_make_target_and_benchmark_of_the_pages_is_there() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    targets = set(re.findall(r"(?:^|`|\bS=\S+ )make ([a-z-]+)", pages, re.MULTILINE))
    benchmarks = {span.split()[3] for page in PAGES for span in command_spans(page, "python -m benchmarks")}
    assert {"demo", "test", "soak"} <= targets <= MAKE_TARGETS
    assert {"spark", "engine"} <= benchmarks <= {benchmark.name for benchmark in BENCHMARKS}


def test_the_headings_of_the_reference_name_the_arguments_of_each_command() -> None:
    """Those that may be left out are in brackets."""
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    headings = dict(re.findall(r"^## `topicops ([a-z ]+?)((?: \[?[A-Z|]+\]?)*)`$", page, re.MULTILINE))
    assert {"plan", "apply", "audit topic"} <= headings.keys()
    for name, shown in headings.items():
        arguments = [each for each in command_of(name.split())[0].params if each.param_type_name == "argument"]
        assert [word.startswith("[") for word in shown.split()] == [not each.required for each in arguments], name

"""``topicops validate``: every problem of every file, on the line where it stands."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from topicops.cli.output import print_result
from topicops.model.exit_status import ExitStatus
from topicops.model.printable import printable
from topicops.model.specs.diagnostics import Diagnostic, Note, Severity
from topicops.model.specs.document import Document

FORMAT_VERSION = "1.0"
_WIDEST_LINE = 160


def validate_command(
    topics: Annotated[Path, typer.Argument(metavar="PATH", help="The folder that holds the topics.")] = Path("topics"),
    environment: Annotated[
        str | None, typer.Option("--environment", "-e", help="Judge the topics as this environment has them; else all.")
    ] = None,
    output: Annotated[
        Literal["text", "json", "github"], typer.Option("--format", help="text, json, or github annotations.")
    ] = "text",
) -> None:
    """Check every file and show all problems at once. Opens no connection."""
    from topicops.cli.files.cached_validation import judge

    started = time.monotonic()
    validated = judge(topics, environment=environment, now=datetime.now(UTC))
    took_s = time.monotonic() - started
    match output:
        case "json":
            shown = _with_sure_fixes(validated.diagnostics, topics, environment)
            print_result(render_json(shown, files=validated.files))
        case "github":
            print_result(
                "\n".join(
                    [*map(annotation, validated.diagnostics), _count(validated.diagnostics, validated.files, took_s)]
                )
            )
        case "text":
            if validated.diagnostics:
                print_result(render_text(validated.diagnostics))
            print_result(_count(validated.diagnostics, validated.files, took_s))
    raise typer.Exit(ExitStatus.ERROR if validated.has_errors else ExitStatus.SUCCESS)


def _with_sure_fixes(
    diagnostics: Sequence[Diagnostic], topics: Path, environment: str | None
) -> tuple[Diagnostic, ...]:
    if all(diagnostic.fix is None and diagnostic.rename_to is None for diagnostic in diagnostics):
        return tuple(diagnostics)
    from topicops.edges.specs.edited import document_after_fix
    from topicops.edges.specs.reader import read_tree
    from topicops.steps.specs.fixes import with_sure_fixes

    def edited(diagnostic: Diagnostic) -> Document | None:
        return document_after_fix(diagnostic, topics)

    return with_sure_fixes(diagnostics, read_tree(topics), edited, environment=environment, now=datetime.now(UTC))


def render_json(diagnostics: Sequence[Diagnostic], *, files: int) -> str:
    """One JSON object, ASCII only, so that no control character is in it."""
    return json.dumps(
        {"format_version": FORMAT_VERSION, "files": files, "diagnostics": [_as_json(d) for d in diagnostics]}, indent=2
    )


def _as_json(diagnostic: Diagnostic) -> dict[str, object]:
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "file": diagnostic.file,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "end_line": diagnostic.end_line,
        "end_column": diagnostic.end_column,
        "summary": printable(diagnostic.summary),
        "help": printable(diagnostic.help),
        "fix": _fix_as_json(diagnostic),
    }


def _fix_as_json(diagnostic: Diagnostic) -> dict[str, object] | None:
    """An edit of the file, or another name for it; None where a person has to decide."""
    if diagnostic.rename_to is not None:
        return {"rename_to": diagnostic.rename_to}
    fix = diagnostic.fix
    if fix is None:
        return None
    return {
        "line": fix.start.line,
        "column": fix.start.column,
        "end_line": fix.end.line,
        "end_column": fix.end.column,
        "text": fix.text,
    }


def render_text(diagnostics: Sequence[Diagnostic]) -> str:
    """Each problem with its line, a caret below the characters, the other place if there is one, and what to do."""
    return "\n".join(line for diagnostic in diagnostics for line in _lines(diagnostic))


def _lines(diagnostic: Diagnostic) -> Iterator[str]:
    place = f"{printable(diagnostic.file)}:{diagnostic.line}:{diagnostic.column}"
    yield f"{place}: {diagnostic.severity} {diagnostic.code}: {printable(diagnostic.summary)}"
    yield from _shown_line(diagnostic)
    note = diagnostic.note
    if note is not None:
        yield f"  {printable(note.file)}:{note.line}:{note.column}: note: {printable(note.text)}"
        yield from _shown_line(note)
    if diagnostic.help:
        yield f"  help: {printable(diagnostic.help)}"
    yield ""


def _shown_line(place: Diagnostic | Note) -> Iterator[str]:
    """The source line and a caret; nothing for a problem of the file as a whole, or a line that is too long to show."""
    from topicops.edges.specs.reader import source_line

    line = source_line(Path(place.file), place.line)
    if not line or len(line) > _WIDEST_LINE:
        return
    last = place.end_column if place.end_line == place.line else len(line) + 1
    before, marked = line[: place.column - 1], line[place.column - 1 : last - 1]
    number = f"{place.line} | "
    yield f"  {number}{printable(line)}"
    yield " " * (2 + len(number) + len(printable(before))) + "^" * max(1, len(printable(marked)))


def annotation(diagnostic: Diagnostic) -> str:
    """A workflow command of GitHub Actions.

    Source: docs.github.com, "Workflow commands for GitHub Actions"; escapes as @actions/core writes them.
    """
    level = "error" if diagnostic.is_error else "warning"
    properties = {
        "file": diagnostic.file,
        "line": str(diagnostic.line),
        "endLine": str(diagnostic.end_line),
        "col": str(diagnostic.column),
        "endColumn": str(diagnostic.end_column),
        "title": diagnostic.code,
    }
    if diagnostic.line != diagnostic.end_line:  # columns would be ignored, with a complaint
        del properties["col"], properties["endColumn"]
    fields = ",".join(f"{name}={_property(printable(value))}" for name, value in properties.items())
    message = printable(diagnostic.summary) + (f"\n{printable(diagnostic.help)}" if diagnostic.help else "")
    return f"::{level} {fields}::{_message(message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _count(diagnostics: Sequence[Diagnostic], files: int, took_s: float) -> str:
    errors = sum(diagnostic.is_error for diagnostic in diagnostics)
    warnings = sum(diagnostic.severity is Severity.WARNING for diagnostic in diagnostics)
    counts = f"{_plural(errors, 'error')}, {_plural(warnings, 'warning')}"
    return f"{_plural(files, 'file')}: {counts} in {took_s:.1f} s"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

"""Diagnostics as text with source lines, as JSON, and as annotations for GitHub Actions; a failure as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from topicops.model.codes import Code
from topicops.model.errors import ExitStatus
from topicops.model.json_types import FormatVersion, json_text
from topicops.model.printable import plural, printable
from topicops.model.specs.diagnostics import Diagnostic, Note, Severity

_WIDEST_LINE = 160

SourceLines = Callable[[Path], Sequence[str]]
"""Function that gives the lines of a file; none if it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """What ``validate`` prints as JSON."""

    format_version: FormatVersion = "1.0"
    files: int
    diagnostics: Sequence[Diagnostic]


def diagnostics_text(diagnostics: Sequence[Diagnostic], source_lines: SourceLines) -> str:
    """Show each problem with its source line, a caret below the characters, a related place, and the help."""
    remembered = lru_cache(maxsize=2)(source_lines)  # the file of the problems and that of their notes
    return "\n".join(line for diagnostic in diagnostics for line in _lines(diagnostic, remembered))


def diagnostics_json(diagnostics: Sequence[Diagnostic], *, files: int) -> str:
    return json_text(Diagnostics(files=files, diagnostics=list(map(in_printable, diagnostics))))


def in_printable(found: Diagnostic) -> Diagnostic:
    """Return the same in words that are safe to print."""
    note = replace(found.note, text=printable(found.note.text)) if found.note else None
    return replace(found, summary=printable(found.summary), help=printable(found.help), note=note)


def annotation(diagnostic: Diagnostic) -> str:
    """Return a workflow command of GitHub Actions.

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
    if diagnostic.line != diagnostic.end_line:  # GitHub ignores columns over several lines, and prints a warning
        del properties["col"], properties["endColumn"]
    fields = ",".join(f"{name}={_property(printable(value))}" for name, value in properties.items())
    message = printable(diagnostic.summary) + (f"\n{printable(diagnostic.help)}" if diagnostic.help else "")
    return f"::{level} {fields}::{_message(message)}"


def counts_line(diagnostics: Sequence[Diagnostic], *, files: int, took_s: float) -> str:
    """Return ``12 files: 1 error, 0 warnings in 0.1 s``; of no file that nothing was checked."""
    if not files:
        return "0 files: nothing was checked"
    errors = sum(diagnostic.is_error for diagnostic in diagnostics)
    warnings = sum(diagnostic.severity is Severity.WARNING for diagnostic in diagnostics)
    return f"{plural(files, 'file')}: {plural(errors, 'error')}, {plural(warnings, 'warning')} in {took_s:.1f} s"


def _lines(diagnostic: Diagnostic, source_lines: SourceLines) -> Iterator[str]:
    place = f"{printable(diagnostic.file)}:{diagnostic.line}:{diagnostic.column}"
    yield f"{place}: {diagnostic.severity} {diagnostic.code}: {printable(diagnostic.summary)}"
    yield from _marked_line(diagnostic, source_lines)
    note = diagnostic.note
    if note is not None:
        yield f"  {printable(note.file)}:{note.line}:{note.column}: note: {printable(note.text)}"
        yield from _marked_line(note, source_lines)
    if diagnostic.help:
        yield f"  help: {printable(diagnostic.help)}"
    yield ""


def _marked_line(place: Diagnostic | Note, source_lines: SourceLines) -> Iterator[str]:
    """Yield the source line and carets below it; nothing where the line is empty or too long to show."""
    lines = source_lines(Path(place.file))
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if not line or len(line) > _WIDEST_LINE:
        return
    last = place.end_column if place.end_line == place.line else len(line) + 1
    before, marked = line[: place.column - 1], line[place.column - 1 : last - 1]
    number = f"{place.line} | "
    yield f"  {number}{printable(line)}"
    yield " " * (2 + len(number) + len(printable(before))) + "^" * max(1, len(printable(marked)))


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


# ---- a command that ended without its result ----


@dataclass(frozen=True, slots=True)
class Failure:
    exit_status: int
    code: str | None
    message: str
    diagnostics: Sequence[Diagnostic]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """What any command prints in the place of its result."""

    format_version: FormatVersion = "1.0"
    error: Failure


def error_json(status: ExitStatus, *, code: Code | None, message: str, diagnostics: Sequence[Diagnostic]) -> str:
    sentence = message or f"{plural(sum(found.is_error for found in diagnostics), 'error')} in the specs"
    found = list(map(in_printable, diagnostics))
    return json_text(Failed(error=Failure(int(status), code, printable(sentence), found)))

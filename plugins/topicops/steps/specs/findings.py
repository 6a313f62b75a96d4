"""What a rule, or the reading of a field, found in a file."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import asdict

from topicops.model.codes import WARNINGS, Code
from topicops.model.specs.diagnostics import Diagnostic, Note, Severity
from topicops.model.specs.document import Span


class Finding(NamedTuple):
    """A problem at its place; with its severity it becomes a diagnostic."""

    code: Code
    file: str
    span: Span
    summary: str
    remedy: str = ""
    topic: str | None = None
    """The topic that has the problem; an exception for that topic may turn it into a warning."""
    warns: bool = False
    """A warning, though its code is usually an error."""
    note: Note | None = None
    """The other of two places that contradict each other."""
    owner: str | None = None
    """The owner whose topics have the problem together."""

    def diagnostic(self, *, lifted: bool = False) -> Diagnostic:
        """Return ``lifted``: an exception turns the error into a warning."""
        is_warning = lifted or self.warns or self.code in WARNINGS
        return Diagnostic(
            code=self.code,
            severity=Severity.WARNING if is_warning else Severity.ERROR,
            file=self.file,
            summary=self.summary,
            help=self.remedy,
            note=self.note,
            **asdict(self.span),
        )


def note_at(file: str, span: Span, text: str) -> Note:
    return Note(file=file, text=text, **asdict(span))


class Unreadable:
    """Placeholder for a value that is in the file and could not be read."""


UNREADABLE = Unreadable()


class FileFindings:
    """Collects the findings of one file while it is read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Finding] = []

    def add(self, code: Code, span: Span, summary: str, remedy: str = "") -> Unreadable:
        """Note a finding; gives ``UNREADABLE``, the value to go on with."""
        self.found.append(Finding(code, self.file, span, summary, remedy))
        return UNREADABLE

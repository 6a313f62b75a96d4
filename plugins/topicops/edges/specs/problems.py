"""The problem that ends the reading of a file, and its diagnostic."""

from __future__ import annotations

from topicops.model.codes import Code
from topicops.model.specs.diagnostics import Diagnostic, Note, Severity
from topicops.model.specs.document import Span


class ReadingError(Exception):
    """The first problem of a file; the file's name is added later, by ``diagnostic``."""

    def __init__(self, code: Code, span: Span, summary: str, remedy: str = "") -> None:
        super().__init__(summary)
        self.code, self.span, self.summary, self.remedy = code, span, summary, remedy
        self.other: tuple[Span, str] | None = None
        """A second place of the file, and what stands there."""

    def diagnostic(self, file: str) -> Diagnostic:
        return Diagnostic(
            code=self.code,
            severity=Severity.ERROR,
            file=file,
            line=self.span.line,
            column=self.span.column,
            end_line=self.span.end_line,
            end_column=self.span.end_column,
            summary=self.summary,
            help=self.remedy,
            note=_note(self.other, file) if self.other else None,
        )


def _note(other: tuple[Span, str], file: str) -> Note:
    span, text = other
    return Note(
        file=file, line=span.line, column=span.column, end_line=span.end_line, end_column=span.end_column, text=text
    )


class UnreadableError(Exception):
    """A file that cannot be read: the reading stopped at its first problem."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(f"{diagnostic.file}:{diagnostic.line}: {diagnostic.summary}")

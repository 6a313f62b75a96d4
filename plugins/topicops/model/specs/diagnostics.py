"""What is wrong with a file, and where: the unit in which problems are reported."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from topicops.model.codes import Code


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file. Lines and columns count from 1; columns count characters."""

    file: str
    """Relative to the working folder, with ``/``."""
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Another place that the problem is about."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    """Few words on what is written there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One problem, on the exact characters."""

    code: Code
    """``TOPnnn``; see the table of codes."""
    severity: Severity
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    summary: str
    """Problem, in one sentence without a full stop."""
    help: str = ""
    """Advice; empty when the summary already contains it."""
    note: Note | None = None
    """The other of the two places that do not go together."""

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        return self.file, self.line, self.column, self.code

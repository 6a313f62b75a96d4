"""Why a command ended without its result, as JSON: what `--format json` prints in the place of a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topicops.model.codes import Code
from topicops.model.errors import ExitStatus
from topicops.model.json_types import FormatVersion, json_text
from topicops.model.printable import printable
from topicops.model.specs.diagnostics import Diagnostic
from topicops.steps.reporting.diagnostics_text import in_printable


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
    sentence = message or f"{sum(found.is_error for found in diagnostics)} error(s) in the specs"
    found = list(map(in_printable, diagnostics))
    return json_text(Failed(error=Failure(int(status), code, printable(sentence), found)))

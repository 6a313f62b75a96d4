"""Why a command ended without its result, as JSON: what `--format json` prints in the place of a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from topicops.model.codes import Code
from topicops.model.exit_status import ExitStatus
from topicops.model.json_types import FormatVersion
from topicops.model.printable import printable
from topicops.model.specs.diagnostics import Diagnostic
from topicops.steps.reporting.json_text import json_text
from topicops.steps.reporting.specs.diagnostics_text import DiagnosticJson, diagnostic_values

FORMAT_VERSION = "1.0"


class ErrorFields(TypedDict):
    exit_status: int
    code: str | None
    message: str
    diagnostics: Sequence[DiagnosticJson]


class ErrorJson(TypedDict):
    format_version: FormatVersion
    error: ErrorFields


def error_json(status: ExitStatus, *, code: Code | None, message: str, diagnostics: Sequence[Diagnostic] = ()) -> str:
    errors = sum(found.is_error for found in diagnostics)
    error: ErrorFields = {
        "exit_status": int(status),
        "code": code,
        "message": printable(message or f"{errors} error(s) in the specs"),
        "diagnostics": [diagnostic_values(found) for found in diagnostics],
    }
    return json_text(ErrorJson(format_version=FORMAT_VERSION, error=error))

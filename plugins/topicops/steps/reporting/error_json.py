"""Why a command ended without its result, as JSON: what `--format json` prints in the place of a result."""

from __future__ import annotations

import json
from collections.abc import Sequence

from topicops.model.exit_status import ExitStatus
from topicops.model.printable import printable
from topicops.model.specs.diagnostics import Diagnostic
from topicops.steps.reporting.specs.diagnostics_text import diagnostic_values

FORMAT_VERSION = "1.0"


def error_json(status: ExitStatus, *, code: str | None, message: str, diagnostics: Sequence[Diagnostic] = ()) -> str:
    """One JSON object, ASCII only, with the one key ``error`` beside its version."""
    errors = sum(found.is_error for found in diagnostics)
    error = {
        "exit_status": int(status),
        "code": code,
        "message": printable(message or f"{errors} error(s) in the specs"),
        "diagnostics": [diagnostic_values(found) for found in diagnostics],
    }
    return json.dumps({"format_version": FORMAT_VERSION, "error": error}, indent=2)

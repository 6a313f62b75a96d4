"""An examination as a person, or a program, reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from topicops.model.cluster.doctor_facts import DoctorReport, Finding, Severity
from topicops.model.printable import printable

FORMAT_VERSION = "1.0"


def doctor_text(examination: DoctorReport) -> str:
    """Facts first, then a line for each finding with its fix, then the counts."""
    return "\n".join(map(printable, _lines(examination)))


def doctor_json(examination: DoctorReport) -> str:
    """One JSON object, ASCII only."""
    return json.dumps(
        {
            "format_version": FORMAT_VERSION,
            "environment": examination.environment,
            "facts": dict(examination.facts),
            "findings": [_finding_as_json(finding) for finding in examination.findings],
            "looked": examination.rules_applied,
            "not_looked": list(examination.rules_not_applied),
        },
        indent=2,
    )


def _lines(examination: DoctorReport) -> Iterator[str]:
    width = max(map(len, examination.facts), default=0)
    for about, sentence in examination.facts.items():
        yield f"{about:<{width}}  {sentence}"
    for finding in examination.findings:
        code = f" {finding.code}" if finding.code else ""
        yield f"{finding.severity}{code} [{finding.id}]: {finding.message}; fix: {finding.fix}"
    if examination.rules_not_applied:
        yield f"not looked at, because something they need is missing: {', '.join(examination.rules_not_applied)}"
    yield _counts(examination)


def _counts(examination: DoctorReport) -> str:
    rules_applied = f"{examination.rules_applied} rules looked"
    if not examination.findings:
        return f"Nothing found; {rules_applied}."
    counts = {severity: sum(f.severity is severity for f in examination.findings) for severity in Severity}
    words = [f"{count} {severity}{'s' if count > 1 else ''}" for severity, count in reversed(counts.items()) if count]
    return f"{', '.join(words)}; {rules_applied}."


def _finding_as_json(finding: Finding) -> dict[str, object]:
    return {
        "id": finding.id,
        "severity": finding.severity,
        "code": finding.code,
        "message": finding.message,
        "fix": finding.fix,
        "places": list(finding.places),
    }

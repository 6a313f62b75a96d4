"""The report of ``doctor`` as text and as JSON: the gravest findings first."""

from __future__ import annotations

import json
from collections.abc import Iterator

from topicops.model.cluster.doctor_facts import DoctorReport, Finding, Severity
from topicops.model.printable import plural, printable

FORMAT_VERSION = "1.0"
ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTICE)


def doctor_text(report: DoctorReport) -> str:
    """Facts first, then a line for each finding with its fix, then the counts."""
    return "\n".join(map(printable, _lines(report)))


def doctor_json(report: DoctorReport) -> str:
    """One JSON object, ASCII only."""
    return json.dumps(
        {
            "format_version": FORMAT_VERSION,
            "environment": report.environment,
            "facts": dict(report.facts),
            "findings": [_finding_as_json(finding) for finding in _by_severity(report)],
            "looked": report.rules_applied,
            "not_looked": list(report.rules_not_applied),
        },
        indent=2,
    )


def _by_severity(report: DoctorReport) -> list[Finding]:
    return sorted(report.findings, key=lambda finding: ORDER.index(finding.severity))


def _lines(report: DoctorReport) -> Iterator[str]:
    width = max(map(len, report.facts), default=0)
    for about, sentence in report.facts.items():
        yield f"{about:<{width}}  {sentence}"
    for finding in _by_severity(report):
        code = f" {finding.code}" if finding.code else ""
        yield f"{finding.severity}{code} [{finding.id}]: {finding.message}; fix: {finding.fix}"
    if report.rules_not_applied:
        yield f"not applied, because something they need is missing: {', '.join(report.rules_not_applied)}"
    yield _counts(report)


def _counts(report: DoctorReport) -> str:
    rules_applied = f"{report.rules_applied} rules applied"
    if not report.findings:
        return f"Nothing found; {rules_applied}."
    counts = {severity: sum(f.severity is severity for f in report.findings) for severity in Severity}
    words = [plural(count, severity) for severity, count in reversed(counts.items()) if count]
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

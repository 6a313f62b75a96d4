"""The report of ``doctor`` as text and as JSON: the gravest findings first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

from topicops.model.cluster.doctor_facts import DoctorReport, Finding, Severity
from topicops.model.json_types import FormatVersion
from topicops.model.printable import plural, printable
from topicops.steps.reporting.json_text import json_text

FORMAT_VERSION = "1.0"
ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTICE)


class FindingJson(TypedDict):
    id: str
    severity: Severity
    code: str | None
    message: str
    fix: str
    places: Sequence[str]


class DoctorJson(TypedDict):
    format_version: FormatVersion
    environment: str
    facts: Mapping[str, str]
    findings: Sequence[FindingJson]
    looked: int
    not_looked: Sequence[str]


def doctor_text(report: DoctorReport) -> str:
    """Facts first, then a line for each finding with its fix, then the counts."""
    return "\n".join(map(printable, _lines(report)))


def doctor_json(report: DoctorReport) -> str:
    found: DoctorJson = {
        "format_version": FORMAT_VERSION,
        "environment": report.environment,
        "facts": report.facts,
        "findings": [_finding_as_json(finding) for finding in _by_severity(report)],
        "looked": report.rules_applied,
        "not_looked": report.rules_not_applied,
    }
    return json_text(found)


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
    counts = {severity: sum(f.severity is severity for f in report.findings) for severity in Severity}
    words = [plural(count, severity) for severity, count in reversed(counts.items()) if count]
    if report.is_clean and report.when_clean:
        words.insert(0, report.when_clean)
    return f"{', '.join(words) or 'Nothing found'}; {plural(report.rules_applied, 'rule')} applied."


def _finding_as_json(finding: Finding) -> FindingJson:
    return {
        "id": finding.id,
        "severity": finding.severity,
        "code": finding.code,
        "message": finding.message,
        "fix": finding.fix,
        "places": finding.places,
    }

"""``topicops doctor``: what topicops can read and do on a cluster, and each problem with its fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from topicops.cli.output import print_value
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, unrecorded_run
from topicops.model.errors import ExitStatus
from topicops.model.printable import plural, printable

if TYPE_CHECKING:
    from topicops.features.ask.doctor.findings import DoctorReport


def doctor_command(
    environment: EnvironmentOption = None, topics: TopicsOption = Path("topics"), output: TextOrJsonOption = "text"
) -> None:
    """Find what would stop an apply: versions, permissions, settings, clocks and metadata. Nothing is written."""
    from topicops.features.ask.doctor.reading import doctor

    report = doctor(unrecorded_run(environment, topics))
    print_value(report, output, doctor_text)
    if report.has_errors:
        raise typer.Exit(ExitStatus.ERROR)


def doctor_text(report: DoctorReport) -> str:
    """Return facts first, then a line for each finding with its fix, then the counts."""
    return "\n".join(map(printable, _lines(report)))


def _lines(report: DoctorReport) -> Iterator[str]:
    from topicops.features.ask.doctor.findings import NO_ZOOKEEPER_HERE

    width = max(map(len, report.facts), default=0)
    for about, sentence in report.facts.items():
        yield f"{about:<{width}}  {sentence}"
    for finding in report.findings:
        code = f" {finding.code}" if finding.code else ""
        yield f"{finding.severity}{code} [{finding.id}]: {finding.message}; fix: {finding.fix}"
    if report.rules_not_applied and not report.facts.get("zookeeper", "").startswith(NO_ZOOKEEPER_HERE):
        yield f"not applied, because something they need is missing: {', '.join(report.rules_not_applied)}"
    counts = Counter(finding.severity for finding in report.findings)  # the gravest come first
    words = [plural(count, severity) for severity, count in counts.items()]
    said = ", ".join(words) or "Nothing found"
    yield f"{said}; {plural(report.rules_applied, 'rule')} applied."

"""With ``-v`` a run of the case tables ends with a count: by table and section, how each case was answered."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = _counts(terminalreporter)
    if not counts or config.get_verbosity() < 1:
        return
    terminalreporter.section("cases answered")
    for (file, section), answers in sorted(counts.items()):
        shown = ", ".join(f"{number} {answer}" for answer, number in sorted(answers.items()))
        terminalreporter.write_line(f"{file} {section}: {shown}")


def _counts(terminalreporter: pytest.TerminalReporter) -> dict[tuple[str, str], Counter[str]]:
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for report in terminalreporter.getreports("passed"):
        said = dict(report.user_properties)
        if "section" in said:
            counts[report.location[0].rpartition("/")[2], str(said["section"])][str(said["answer"])] += 1
    return counts

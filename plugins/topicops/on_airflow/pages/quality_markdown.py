"""Quality results as Markdown, for a task's log and note."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.printable import bold, markdown
from topicops.model.runs.results import FailingRow, QualityReport, QualityResult


def quality_markdown(report: QualityReport) -> str:
    """One table row a rule; below it, for each rule that fails, its rows, and where it is written what to do."""
    lines = ["| rule | what must hold | severity | result | rows |", "| --- | --- | --- | --- | --- |"]
    lines += [_table_row(result) for result in report.results]
    for result in report.failed:
        lines += ["", *_failure(result)]
    return "\n".join(lines) + "\n"


def _table_row(result: QualityResult) -> str:
    verdict = "passed" if result.success else "**failed**"
    rows = f"{result.rows_failed} of {result.rows_checked}" if not result.success else str(result.rows_checked)
    cells = [markdown(result.rule), markdown(result.title), markdown(result.severity), verdict, rows]
    return f"| {' | '.join(cells)} |"


def _failure(result: QualityResult) -> Iterator[str]:
    yield f"{bold(result.rule)}: {_heading(result)}{_history(result)}"
    yield ""
    yield from (f"- {_named(example)}" for example in result.examples)
    if result.runbook:
        yield f"- What to do: {markdown(result.runbook)}"


def _heading(result: QualityResult) -> str:
    shown = len(result.examples)
    return f"{shown} of {result.rows_failed} rows" if shown < result.rows_failed else "the rows that break it"


def _history(result: QualityResult) -> str:
    if result.rows_failed_before is None:
        return ""
    if result.is_pre_existing:
        return "; it was so before the changes"
    return f"; {result.rows_failed - result.rows_failed_before} of them new since the changes"


def _named(example: FailingRow) -> str:
    words = ", ".join(f"{markdown(name)}={markdown(str(value))}" for name, value in example.row.items())
    return f"{words} (so before)" if example.was_so_before else words

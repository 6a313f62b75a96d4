"""Quality results as Markdown, for a task's log and note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topicops.model.printable import markdown
from topicops.model.results import QualityResult


def quality_markdown(results: Sequence[QualityResult]) -> str:
    """One table row a rule, and below the table the rows that break one, by rule."""
    lines = ["| rule | what must hold | severity | result | rows |", "| --- | --- | --- | --- | --- |"]
    lines += [_table_row(result) for result in results]
    for result in results:
        if result.examples:
            lines += ["", f"**{markdown(result.rule)}**: {_heading(result)}", ""]
            lines += [f"- {_example(example)}" for example in result.examples]
    return "\n".join(lines) + "\n"


def _table_row(result: QualityResult) -> str:
    verdict = "passed" if result.success else "**failed**"
    rows = f"{result.rows_failed} of {result.rows_checked}" if not result.success else str(result.rows_checked)
    cells = [markdown(result.rule), markdown(result.title), markdown(result.severity), verdict, rows]
    return f"| {' | '.join(cells)} |"


def _heading(result: QualityResult) -> str:
    shown = len(result.examples)
    return f"{shown} of {result.rows_failed} rows" if shown < result.rows_failed else "the rows that break it"


def _example(example: Mapping[str, object]) -> str:
    return ", ".join(f"{markdown(name)}={markdown(str(value))}" for name, value in example.items())

"""What ``topicops fmt`` changed and what it left alone, as text."""

from __future__ import annotations

from topicops.features.formatting.standard_form import FormatResult


def format_text(result: FormatResult, *, check: bool) -> str:
    """One line for each file that has an error, then the counts."""
    lines = [f"left alone: {file}:{d.line}: {d.code}: {d.summary}" for file, d in sorted(result.left_alone.items())]
    if not result.files:
        return "0 files: nothing was formatted"
    counts = f"{len(result.edits)} of {result.files} file(s) {'would change' if check else 'changed'}"
    rest = f", {len(result.left_alone)} left alone" if result.left_alone else ""
    return "\n".join([*lines, f"{counts}{rest}"])

"""What the commands on spec files do: validate specs. No connection is opened."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.edges.specs.open_files import source_lines
from topicops.edges.specs.reader import read_tree
from topicops.model.gc_pause import gc_paused
from topicops.model.specs.diagnostics import Diagnostic

if TYPE_CHECKING:
    from topicops.steps.specs.validate import Validated


@gc_paused()
def validate_files(topics: Path, *, environment: str | None) -> Validated:
    """Find every problem of every file.

    Args:
        environment: None means that the topics of every environment are checked.

    Raises:
        UsageError: There is no such folder, or no such environment.
    """
    from topicops.steps.specs.validate import validate

    return validate(read_tree(topics), environment=environment, now=datetime.now(UTC))


def shown_diagnostics(diagnostics: Sequence[Diagnostic]) -> str:
    """Diagnostics as text, each with its source line."""
    from topicops.steps.reporting.specs.diagnostics_text import diagnostics_text

    return diagnostics_text(diagnostics, source_lines)

"""How many lines each audit log of a home had before a run read the cluster.

A line with a higher number is later, whatever the clocks of the hosts say.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from topicops.edges.home.audit_files import audited_environments, last_line_number
from topicops.flow.runs.run import Run, audit_folder
from topicops.model.runs.facts import FactsWhen


def note_reading(run: Run, when: FactsWhen) -> None:
    """Before the cluster is read: keep how many changes were sent so far."""
    run.store.write_value(_marks_file(when), audit_marks(run.home))


def reading_marks(run: Run, when: FactsWhen) -> Mapping[str, int]:
    """Read what ``note_reading`` left; empty if it left nothing: then each change counts as later."""
    return run.store.read_value(_marks_file(when), dict[str, int]) if run.store.has(_marks_file(when)) else {}


def audit_marks(home: Path) -> Mapping[str, int]:
    """Give the number of the last line of each audit log, by environment."""
    folder = audit_folder(home)
    return {name: last_line_number(folder, name) for name in audited_environments(folder)}


def _marks_file(when: FactsWhen) -> str:
    return f"audit-lines-{when}.json"

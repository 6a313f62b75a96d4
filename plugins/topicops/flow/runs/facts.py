"""The facts of a run, as artifacts and as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topicops.flow.runs.run import Run
from topicops.model.runs.facts import Facts, FactsWhen, facts_file

if TYPE_CHECKING:
    from topicops.edges.tables.table_folder import TableFolder


def write_facts(run: Run, when: FactsWhen, facts: Facts, tables: TableFolder | None) -> None:
    """``facts-before.json`` or ``facts-after.json``, and the tables if the run keeps some."""
    run.store.write_value(facts_file(when), facts)
    if tables is not None:
        from topicops.edges.tables.results import write_facts as write_tables

        write_tables(tables, facts)


def read_facts(run: Run, when: FactsWhen) -> Facts | None:
    """None: they were not counted in this run."""
    name = facts_file(when)
    return run.store.read_value(name, Facts) if run.store.has(name) else None

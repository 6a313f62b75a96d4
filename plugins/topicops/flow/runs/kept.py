"""Keep the values of a run in its folder, and load them again: one pair of functions for each step.

The topics of the files and of the cluster are kept in tables for Spark, else whole in ``desired.json`` and
``live.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from topicops.edges.durable_files import write_atomically
from topicops.edges.home.artifacts import prune_runs
from topicops.edges.home.audit_files import audited_environments, last_line_number
from topicops.edges.places import Place, scratch_folder, written_at
from topicops.flow.runs.outcomes import outcomes_so_far
from topicops.flow.runs.questions import ANSWER, left_out
from topicops.flow.runs.run import (
    CHANGES_FILE,
    CHECKS_FILE,
    DELTA_FILE,
    DESIRED_FILE,
    DIAGNOSTICS_FILE,
    ENVIRONMENT_FILE,
    KINDS,
    LIVE_FILE,
    NOTES_FILE,
    PLAN_FILE,
    READING_FILE,
    TABLES_FILE,
    EnvironmentRun,
    Run,
    audit_folder,
    baseline_file,
    notes_of,
    outcomes_file,
    read_environment,
    tables_uri,
)
from topicops.flow.runs.values import Comparison, RunResults, Snapshot, Specs
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.memory import gc_paused
from topicops.model.plans.changes import ACTIONS
from topicops.model.plans.delta import Delta
from topicops.model.plans.plan import ChangeSet, Plan
from topicops.model.plans.plan_file import changes_to_json, plan_to_json
from topicops.model.ports import LiveReader
from topicops.model.release import Release
from topicops.model.runs.facts import Facts, FactsWhen, Reading, facts_file
from topicops.model.runs.results import Check, QualityReport, quality_file
from topicops.model.specs.desired import Desired
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.environment import Environment

if TYPE_CHECKING:
    from topicops.edges.tables.table_folder import TableFolder

PRUNED_EVERY = timedelta(hours=1)
_PRUNED = ".pruned"
"""File in the folder of runs; its time is the time of the last pruning."""


def prune(home: Place, *, now: datetime) -> None:
    """Remove old runs, and their tables wherever they are; once in ``PRUNED_EVERY``, because it looks at each run."""
    if not _is_time_to_prune(home / "runs" / _PRUNED, now):
        return
    if (uri := tables_uri()) is None:
        prune_runs(home, now=now)
        return
    from topicops.edges.tables.table_folder import remove_tables

    prune_runs(home, now=now, first=lambda run: remove_tables(uri, scratch_folder(run)))


def _is_time_to_prune(mark: Place, now: datetime) -> bool:
    """Return whether the mark is old, or missing; then it is new."""
    try:
        if abs(now.timestamp() - written_at(mark)) < PRUNED_EVERY.total_seconds():
            return False
    except FileNotFoundError:
        pass
    except OSError:
        return True
    with suppress(OSError):  # another account may have made the folder
        write_atomically(mark, f"{now}\n".encode(), is_durable=False)
    return True


@gc_paused()
def keep_specs(run: Run, specs: Specs, *, as_tables: bool) -> Specs:
    """Write ``environment.json``, and ``desired.json`` whole or beside its table; the snapshot is kept the same way.

    Gives the specs whose topics are read from the table, if there is one: it need not hold all of them.
    """
    run.store.write_value(ENVIRONMENT_FILE, specs.environment)
    run.store.remove(TABLES_FILE, DELTA_FILE)
    if not as_tables:
        run.store.write_value(DESIRED_FILE, specs.desired)
        return specs
    from topicops.edges.tables.topics import read_desired_topics, write_desired_topics

    tables = run.new_tables(specs.environment)
    write_desired_topics(tables, specs.desired.topics, specs.environment.spec.cluster.release)
    run.store.write_value(DESIRED_FILE, replace(specs.desired, topics={}))
    return replace(specs, desired=replace(specs.desired, topics=read_desired_topics(tables)))


def load_specs(run: EnvironmentRun) -> Specs:
    return Specs(environment=read_environment(run), desired=run.read_desired())


def keep_snapshot(run: Run, snapshot: Snapshot) -> Place:
    """Write ``run.json``, and ``live.json`` whole or beside its tables; remove an earlier comparison."""
    live = snapshot.live
    run.store.remove(DELTA_FILE)
    path = run.store.write_value(LIVE_FILE, live if live.totals is None else replace(live, topics={}))
    keep_reading(run, snapshot.reading)
    return path


def keep_reading(run: Run, reading: Reading) -> Place:
    """Write ``run.json``, which people read too."""
    return run.store.write_json(READING_FILE, reading)


def load_snapshot(run: Run) -> Snapshot:
    return Snapshot(live=run.read_live(), reading=run.store.read_value(READING_FILE, Reading))


def load_reading(run: Run) -> Reading | None:
    """Return None if the run has read no cluster."""
    return run.store.read_if_there(READING_FILE, Reading)


def keep_comparison(run: Run, comparison: Comparison) -> Place:
    """Write ``delta.json`` and ``facts-before.json``, and the tables if the run keeps some."""
    tables = run.tables()
    keep_facts(run, "before", comparison.facts, tables)
    if tables is not None:
        from topicops.edges.tables.results import write_delta

        write_delta(tables, comparison.delta)
    return run.store.write_value(DELTA_FILE, comparison.delta)


def keep_facts(run: Run, when: FactsWhen, facts: Facts, tables: TableFolder | None) -> None:
    """Write ``facts-before.json`` or ``facts-after.json``, and the tables if the run keeps some."""
    run.store.write_value(facts_file(when), facts)
    if tables is not None:
        from topicops.edges.tables.results import write_facts

        write_facts(tables, facts)


def load_facts(run: Run, when: FactsWhen) -> Facts | None:
    """Return None if they were not counted in this run."""
    return run.store.read_if_there(facts_file(when), Facts)


def keep_changes(run: Run, change_set: ChangeSet) -> Place:
    return run.store.write_text(CHANGES_FILE, changes_to_json(change_set))


def keep_plan(run: Run, plan: Plan) -> Place:
    """Write ``plan.json``; remove the outcomes, notes, checks and baselines of an earlier plan of this run."""
    run.store.remove(*(outcomes_file(action) for action in ACTIONS), CHECKS_FILE, NOTES_FILE)
    run.store.remove(quality_file("after"), facts_file("after"))
    run.store.remove(*(baseline_file(kind) for kind in KINDS))
    return run.store.write_text(PLAN_FILE, plan_to_json(plan))


def keep_checks(run: Run, checks: Sequence[Check]) -> Place:
    return run.store.write_value(CHECKS_FILE, tuple(checks))


def load_results(run: Run) -> RunResults:
    """Load what the report shows of the run so far."""
    before, after = load_facts(run, "before"), load_facts(run, "after")
    is_unhealthy = any(found and found.unhealthy for found in (before, after))
    return RunResults(
        reading=load_reading(run),
        # The report names topics only where something is unhealthy; a table of all is not read for less.
        described=frozenset(run.read_desired().topics) if is_unhealthy and run.store.has(DESIRED_FILE) else frozenset(),
        plan=run.read_plan() if run.store.has(PLAN_FILE) else None,
        outcomes=outcomes_so_far(run),
        has_applied=any(run.store.has(outcomes_file(action)) for action in ACTIONS),
        checks=run.store.read_if_there(CHECKS_FILE, tuple[Check, ...]) or (),
        quality_before=run.store.read_if_there(quality_file("before"), QualityReport),
        quality_after=run.store.read_if_there(quality_file("after"), QualityReport),
        facts_before=before,
        facts_after=after,
        notes=notes_of(run),
        rejected=left_out(run),
        diagnostics=run.store.read_if_there(DIAGNOSTICS_FILE, tuple[Diagnostic, ...]) or (),
        is_answer=run.store.has(ANSWER),
    )


def load_all_results(run: Run) -> RunResults:
    """Load as ``load_results``, with what the run has compared."""
    desired = run.store.read_if_there(DESIRED_FILE, Desired)  # its topics may be in a table, which is not read
    return replace(
        load_results(run),
        environment=run.store.read_if_there(ENVIRONMENT_FILE, Environment),
        left_out=frozenset(desired.left_out) if desired else frozenset(),
        delta=run.store.read_if_there(DELTA_FILE, Delta),
    )


def live_snapshot(tables: TableFolder | None, reader: LiveReader, release: Release, *, states: bool) -> ClusterSnapshot:
    """Return a snapshot whose topics go into these tables, if there are some, while they are read."""
    if tables is None:
        return reader.snapshot(states=states)
    return snapshot_into(tables, reader, release, states=states)


def snapshot_into(tables: TableFolder, reader: LiveReader, release: Release, *, states: bool) -> ClusterSnapshot:
    """Read a snapshot and write its topics into these tables; brokers of ``release`` judge overrides."""
    from topicops.edges.tables.results import write_cluster
    from topicops.edges.tables.topics import LiveTables

    with LiveTables(tables, release) as sink:
        live = reader.snapshot(states=states, into=sink)
        write_cluster(tables, live)
        return replace(live, totals=sink.totals)


def note_reading(run: Run, home: Place, when: FactsWhen) -> None:
    """Keep how many changes were sent so far, before the cluster is read."""
    run.store.write_value(_marks_file(when), audit_marks(home))


def reading_marks(run: Run, when: FactsWhen) -> Mapping[str, int]:
    """Read what ``note_reading`` left; empty if it left nothing: then each change counts as later."""
    return run.store.read_if_there(_marks_file(when), dict[str, int]) or {}


def audit_marks(home: Place) -> Mapping[str, int]:
    """Give the number of the last line of each audit log, by environment."""
    folder = audit_folder(home)
    return {name: last_line_number(folder, name) for name in audited_environments(folder)}


def _marks_file(when: FactsWhen) -> str:
    return f"audit-lines-{when}.json"

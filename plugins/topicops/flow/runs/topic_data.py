"""What a run keeps of all topics: in tables for Spark, else whole in ``desired.json`` and ``live.json``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.edges.home.artifacts import prune_runs
from topicops.flow.runs.run import DELTA_FILE, TABLES_FILE, Run, tables_uri
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.ports import LiveReader
from topicops.model.release import Release
from topicops.model.specs.desired import Desired

if TYPE_CHECKING:
    from topicops.edges.tables.table_folder import TableFolder


PRUNED_EVERY = timedelta(hours=1)
_PRUNED = ".pruned"
"""In the folder of runs; its time is that of the last time."""


def prune(home: Path, *, now: datetime) -> None:
    """Remove old runs, and their tables wherever they are; once in ``PRUNED_EVERY``, because it looks at each run."""
    if not _is_time_to_prune(home / "runs" / _PRUNED, now):
        return
    if (uri := tables_uri()) is None:
        prune_runs(home, now=now)
        return
    from topicops.edges.tables.place import remove_tables

    prune_runs(home, now=now, first=partial(remove_tables, uri))


def _is_time_to_prune(mark: Path, now: datetime) -> bool:
    """Whether the mark is old, or missing; then it is new."""
    try:
        if abs(now.timestamp() - mark.stat().st_mtime) < PRUNED_EVERY.total_seconds():
            return False
    except FileNotFoundError:
        pass
    except OSError:
        return True
    with suppress(OSError):  # another account may have made the folder
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return True


def write_desired(run: Run, desired: Desired, release: Release, *, as_tables: bool) -> Path:
    """``desired.json``, whole or beside its table. Decides for the run, whose snapshot is kept the same way."""
    run.store.remove(TABLES_FILE, DELTA_FILE)
    if not as_tables:
        return run.store.write_value("desired.json", desired)
    from topicops.edges.tables.desired_topics import write_desired_topics

    write_desired_topics(run.new_tables(), desired.topics, release)
    return run.store.write_value("desired.json", replace(desired, topics={}))


def live_snapshot(tables: TableFolder | None, reader: LiveReader, release: Release, *, states: bool) -> ClusterSnapshot:
    """A snapshot whose topics go into these tables, if there are some, while they are read."""
    if tables is None:
        return reader.snapshot(states=states)
    return snapshot_into(tables, reader, release, states=states)


def snapshot_into(tables: TableFolder, reader: LiveReader, release: Release, *, states: bool) -> ClusterSnapshot:
    """A snapshot whose topics go into these tables while they are read; brokers of ``release`` judge overrides."""
    from topicops.edges.tables.live_topics import LiveTables
    from topicops.edges.tables.results import write_cluster

    with LiveTables(tables, release) as sink:
        live = reader.snapshot(states=states, into=sink)
        write_cluster(tables, live)
        return replace(live, totals=sink.totals)


def write_live(run: Run, live: ClusterSnapshot) -> Path:
    """``live.json``, whole or beside its tables. What was compared with an earlier one is removed."""
    run.store.remove(DELTA_FILE)
    return run.store.write_value("live.json", live if live.totals is None else replace(live, topics={}))

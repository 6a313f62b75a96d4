"""The rules judged in Spark, over the tables of a run: for many topics, and for rules of an environment's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from topicops.features.quality.edges.measuring import judge_rows
from topicops.features.quality.edges.rows import (
    Frames,
    alike_frames,
    listed_frames,
    partition_frame,
    rows_frame,
    spec_frames,
    topic_frames,
)
from topicops.features.quality.measures import Judged
from topicops.features.quality.rules import Afterwards, InputsRow, RowKind, Rule, cluster_row, deletion_rows
from topicops.features.spark.edges.comparison import counted, counts_of
from topicops.features.spark.edges.frames import RunTables
from topicops.features.spark.edges.session import spark_session
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.runs.facts import PartitionCounts


@contextmanager
def _tables(run: EnvironmentRun, live: ClusterSnapshot) -> Iterator[RunTables]:
    with spark_session(connections=run.connections) as spark:
        yield RunTables(spark, run.known_tables(), live, f"{run.environment} {run.name}")


def judge_before(
    run: EnvironmentRun,
    rules: Sequence[Rule],
    live: ClusterSnapshot,
    inputs: InputsRow,
    known: Afterwards,
    expected: Mapping[RowKind, int],
) -> Judged:
    """Judge the tables that the run has read. Raises ``TopicopsError``."""
    with _tables(run, live) as tables:
        one_row = rows_frame(tables.spark, "inputs", [inputs])
        frames: Frames = {**spec_frames(tables), **listed_frames(tables), "inputs": one_row}
        to_count = to_name = frames
        if not all(rule.kind in frames for rule in rules):
            to_count = {**frames, **frames_to_count(tables, known, rules)}
            to_name = {**frames, **frames_to_name(tables, known)}
        with tables.step("quality_before", rows=sum(expected.values())):
            return judge_rows(rules, to_count, lambda: to_name, expected)[0]


def judge_after(
    run: EnvironmentRun,
    rules: Sequence[Rule],
    live: ClusterSnapshot,
    known: Afterwards,
    expected: Mapping[RowKind, int],
    *,
    first: ClusterSnapshot,
    was_so: Afterwards,
) -> tuple[Judged, PartitionCounts]:
    """Judge the tables below ``after``, and count their partitions in the same action. Raises ``TopicopsError``.

    Args:
        first: The snapshot before the changes, whose tables the run has.
        was_so: What was known then.
    """
    with _tables(run, live) as tables:
        earlier = replace(tables, head=first)
        tables = replace(tables, folder=tables.folder.below("after"))
        with tables.step("quality_after", rows=sum(expected.values())):
            judged, beside = judge_rows(
                rules,
                frames_to_count(tables, known, rules),
                partial(frames_to_name, tables, known),
                expected,
                earlier=partial(frames_to_name, earlier, was_so) if first.has_states else None,
                beside=counted(tables),
            )
        return judged, counts_of(beside)


def frames_to_count(tables: RunTables, known: Afterwards, rules: Iterable[Rule] = ()) -> Frames:
    """Return the rows of each kind for counting: alike partitions are one row, unless a rule reads topic or number."""
    frames: Frames = {**_frames_of_topics(tables, known), **alike_frames(tables)}
    own = [rule.shows.split(", ") for rule in rules if rule.own and rule.kind == "partition"]
    reads_key = any("topic" in shown or "partition" in shown for shown in own)
    return {**frames, "partition": partition_frame(tables)} if reads_key else frames


def frames_to_name(tables: RunTables, known: Afterwards) -> Frames:
    """Return all rows of each kind, each under its own name."""
    return {**frames_to_count(tables, known), "partition": partition_frame(tables)}


def _frames_of_topics(tables: RunTables, known: Afterwards) -> Frames:
    small: dict[RowKind, Sequence[tuple[object, ...]]] = {
        "deletion": deletion_rows(tables.head, known),
        "cluster": [cluster_row(tables.head, known)],
    }
    if known.differences is not None:
        small["difference"] = list(known.differences.items())
    frames = {kind: rows_frame(tables.spark, kind, rows) for kind, rows in small.items()}
    return {**topic_frames(tables, known), **frames}

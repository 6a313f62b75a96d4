"""The rows of the quality rules, made by Spark from tables: the same as plain Python makes of the same world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from fixtures.quality_rows import rows_after, rows_before
from fixtures.random_worlds import World
from fixtures.spark_rows import written
from topicops.features.quality.edges.evaluation import listed_frames, partition_frames, spec_frames, topic_frames
from topicops.features.quality.rules import Afterwards, RowKind
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic

WORLDS = [pytest.param(seed, marks=[pytest.mark.soak] if seed > 1 else []) for seed in range(6)]


def rows_of(frame: DataFrame, like: Sequence[tuple[object, ...]]) -> Counter[object]:
    """Return the frame's rows, with its columns in the order of the row type."""
    fields = like[0]._fields if like else frame.columns  # type: ignore[attr-defined]
    return Counter(str(tuple(_plain(row[name]) for name in fields)) for row in frame.toArrow().to_pylist())


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def with_all_states(live: ClusterSnapshot) -> ClusterSnapshot:
    topics: Iterable[LiveTopic] = live.topics.values()
    return replace(live, topics={t.name: replace(t, states=t.states or {}) for t in topics})


@pytest.mark.parametrize("seed", WORLDS)
def test_spark_makes_the_rows_that_plain_python_makes(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    world = World(seed)
    live = with_all_states(world.live)
    names = sorted(live.topics)
    known = Afterwards(
        managed=world.desired.topics.keys(),
        known_identities={name: "other" if n % 2 else live.topics[name].identity for n, name in enumerate(names[1:])},
        own_topic_identities={live.topics[name].identity for name in names[:2]},
    )
    tables = written(spark, tmp_path, world, live)
    before = rows_before(world.desired, live, world.environment, topics_last_good=None)
    after = rows_after(live, known)

    made = {**spec_frames(tables), **listed_frames(tables), **partition_frames(tables), **topic_frames(tables, known)}

    plain: Mapping[RowKind, Sequence[tuple[object, ...]]] = {**before, **after}
    assert {kind: rows_of(frame, plain[kind]) for kind, frame in made.items()} == {
        kind: Counter(str(tuple(row)) for row in plain[kind]) for kind in made
    }

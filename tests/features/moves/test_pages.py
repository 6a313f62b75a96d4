"""What the pages of Airflow show of replicas that move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes.builders import desired_topic, live_topic, snapshot
from fixtures.html_seen import Seen, assert_nothing_runs
from fixtures.rich_plan import HOSTILE
from fixtures.topic_index import head_of, write_index
from topicops.features.moves.on_airflow import pages
from topicops.features.moves.record import MOVES, EndedMove, MovesRecord, OwnedRate, PartitionMove, Stage, TopicMove
from topicops.features.topic_pages.file import TopicIndex
from topicops.features.topic_pages.indexing import indexed_topics
from topicops.features.topic_pages.later import LaterRun
from topicops.features.topic_pages.on_airflow.reading import read_indexed
from topicops.features.topic_pages.on_airflow.topic_page import topic_page
from topicops.features.topic_pages.on_airflow.topics_page import topics_page
from topicops.features.topic_pages.values import TopicsWanted
from topicops.model.plans.changes import MoveReason
from topicops.model.runs.results import OutcomeStatus
from topicops.on_airflow.names import RunOf
from topicops.on_airflow.pages.parts import page
from topicops.on_airflow.pages.plan_page import plan_page
from topicops.on_airflow.pages.reading import read_plan
from topicops.steps.reporting.markup import Html

MIB = 1 << 20
NOW = datetime.now(UTC)
RUN = "topic_pipeline_local/manual__1"


def partition(copied: int, size: int, *, stage: Stage = Stage.ASKED, grown: int = 10) -> PartitionMove:
    """One partition from brokers 1 and 2 to 1 and 3, asked for ten minutes ago; ``grown``: minutes later."""
    begun = NOW - timedelta(minutes=10)
    return PartitionMove(
        origin=(1, 2), target=(1, 3), stage=stage, asked_at=begun, copied_bytes=copied * MIB, size_bytes=size * MIB,
        grown_at=begun + timedelta(minutes=grown), bytes_per_s=copied * MIB / 600,
    )  # fmt: skip


def moves(topic: str, partitions: Mapping[int, PartitionMove], *, run: str = RUN) -> TopicMove:
    return TopicMove(
        topic=topic, identity="a", why=MoveReason.DRAIN, digest=topic, run=run, partitions=partitions,
        accepted_at=NOW - timedelta(minutes=11),
    )  # fmt: skip


def ended(topic: str, *, hours: float = 0.1, run: str = RUN, status: str = "done", message: str = "") -> EndedMove:
    at = NOW - timedelta(hours=hours)
    return EndedMove(
        topic=topic, why=MoveReason.DRAIN, run=run, partitions=3, status=status, message=message, at=at
    )  # fmt: skip


def record(*topics: TopicMove, past: tuple[EndedMove, ...] = (), notes: tuple[str, ...] = ()) -> MovesRecord:
    rates = (OwnedRate(broker=1, rate=50 * MIB),) if topics else ()
    return MovesRecord(
        cluster_id="c", topics=topics, rates=rates, ended=past, notes=notes, stepped_at=NOW, bytes_per_s=0.1 * MIB
    )  # fmt: skip


def keep(home: Path, kept: MovesRecord) -> Path:
    MOVES.of(home, "local").write(kept)
    return home


def seen_of(part: Html | None) -> Seen:
    assert part is not None
    return Seen(page("Topics", part))


ORDERS = moves("shop.orders", {0: partition(60, 100), 1: partition(0, 0, stage=Stage.ACCEPTED)})


def test_the_page_of_an_environment_says_how_far_each_topic_is_and_how_to_take_it_back(tmp_path: Path) -> None:
    notes = ("shop.orders-1: waits for broker 3, which is dead",)
    seen = seen_of(pages.moves_of_environment(keep(tmp_path, record(ORDERS, notes=notes)), "local"))
    assert "shop.orders" in seen.texts
    assert "moving 1 of 2 partitions, 30 %, about 23 min" in seen.texts
    assert "102.4KiB/s" in seen.texts
    assert any("throttle 50.0MiB/s for each broker" in text for text in seen.texts)
    assert "topicops moves --cancel shop.orders --environment local" in seen.texts
    assert notes[0] in seen.texts


def test_a_throttle_that_is_still_owed_is_shown_without_any_topic(tmp_path: Path) -> None:
    owed = replace(record(notes=("the rate of broker 2 stays until it is back",)), rates=(OwnedRate(broker=2, rate=1),))
    seen = seen_of(pages.moves_of_environment(keep(tmp_path, owed), "local"))
    assert "Throttle rates are still to be removed." in seen.texts
    assert "the rate of broker 2 stays until it is back" in seen.texts


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(None, id="nothing ever moved"),
        pytest.param(record(), id="nothing moves"),
        pytest.param(record(past=(ended("shop.orders", hours=25),)), id="all ended long ago"),
    ],
)
def test_where_nothing_moves_and_nothing_ended_lately_the_page_has_no_such_part(
    tmp_path: Path, kept: MovesRecord | None
) -> None:
    if kept:
        keep(tmp_path, kept)
    assert pages.moves_of_environment(tmp_path, "local") is None


def test_what_ended_in_the_last_day_is_listed_with_how(tmp_path: Path) -> None:
    past = (ended("shop.orders"), ended("shop.carts", status="dropped", message="its file asks for factor 2 now"))
    seen = seen_of(pages.moves_of_environment(keep(tmp_path, record(past=past)), "local"))
    assert "6 partitions ended in the last day" in seen.texts
    assert {"done", "dropped", "its file asks for factor 2 now"} <= set(seen.texts)


def test_the_page_of_a_topic_shows_each_partition_with_its_brokers_and_what_stands_still(tmp_path: Path) -> None:
    moved = moves("shop.orders", {4: partition(25, 100, grown=0), 7: partition(0, 0, stage=Stage.ACCEPTED)})
    seen = seen_of(pages.moves_of_topic(keep(tmp_path, record(moved)), "local", "shop.orders"))
    assert {"4", "7", "1, 2", "1, 3", "25.0MiB of 100.0MiB", "waits"} <= set(seen.texts)
    assert any("nothing was copied since " in text for text in seen.texts)
    assert "topicops moves --cancel shop.orders --environment local" in seen.texts


def test_the_page_of_another_topic_says_nothing_of_it(tmp_path: Path) -> None:
    assert pages.moves_of_topic(keep(tmp_path, record(ORDERS)), "local", "shop.other") is None


def test_what_is_said_of_a_topic_is_not_said_of_another_whose_name_begins_with_its_name(tmp_path: Path) -> None:
    ours = ("shop.orders partition 4: no leader.", "shop.orders partitions 0, 1: full.", "shop.orders: no throttle.")
    others = ("shop.orders-eu partition 0: no leader.", "eu.shop.orders partition 0: full.")
    longer = moves("shop.orders-eu", {0: partition(1, 2)}, run="cli/7")
    keep(tmp_path, record(ORDERS, longer, notes=(*ours, *others)))
    for part in (pages.moves_of_topic(tmp_path, "local", "shop.orders"), pages.moves_of_runs(tmp_path, "local", {RUN})):
        seen = set(seen_of(part).texts)
        assert seen.issuperset(ours)
        assert seen.isdisjoint(others)


def test_the_page_of_a_run_shows_what_this_run_has_begun_and_nothing_else(tmp_path: Path) -> None:
    other = moves("shop.other", {0: partition(1, 2)}, run="cli/7")
    kept = record(ORDERS, other, past=(ended("shop.gone", run="cli/7"),), notes=("shop.other: waits",))
    seen = seen_of(pages.moves_of_runs(keep(tmp_path, kept), "local", {RUN}))
    assert "shop.orders" in seen.texts
    assert not {"shop.other", "shop.gone", "shop.other: waits"} & set(seen.texts)
    assert pages.moves_of_runs(tmp_path, "local", {"topic_pipeline_local/manual__2"}) is None


NOTES = (
    "shop partition 0: not started: somebody else moves it.",
    "shop partitions 1, 2: waits for broker 3, which is not live.",
    "shop: its replicas move without a throttle: refused.",
)
NOTES_OF_OTHERS = (
    "shop.orders partition 0: cannot be cancelled: no replica of 1 is live.",
    "shop-eu: our entries are still in its throttle lists: refused.",
    "eu.shop partition 4: has moved, but broker 2 is not in sync yet.",
    "Broker 3: its moves run without our throttle: refused.",
)


def test_notes_of_a_topic_whose_name_begins_or_ends_alike_are_not_shown(tmp_path: Path) -> None:
    keep(tmp_path, record(moves("shop", {0: partition(1, 2)}), notes=(*NOTES_OF_OTHERS, *NOTES)))
    for part in (pages.moves_of_topic(tmp_path, "local", "shop"), pages.moves_of_runs(tmp_path, "local", {RUN})):
        texts = seen_of(part).texts
        assert [text for text in texts if text in (*NOTES, *NOTES_OF_OTHERS)] == [*NOTES]


def test_a_record_that_cannot_be_read_is_said_on_the_page_and_breaks_nothing(tmp_path: Path) -> None:
    keep(tmp_path, record(ORDERS))
    (tmp_path / "moves/local.json").write_text("{", encoding="utf-8")
    seen = seen_of(pages.moves_of_environment(tmp_path, "local"))
    assert any(text.startswith("Nobody can say what moves: ") for text in seen.texts)


def test_no_text_of_a_topic_a_note_or_a_run_becomes_markup(tmp_path: Path) -> None:
    hostile = moves(HOSTILE, {0: partition(1, 2)}, run=f"cli/{HOSTILE}")
    kept = record(
        hostile, past=(ended(HOSTILE, message=HOSTILE, run=f"dag/{HOSTILE}"),), notes=(f"{HOSTILE}: {HOSTILE}",)
    )
    keep(tmp_path, kept)
    for part in (
        pages.moves_of_environment(tmp_path, "local"),
        pages.moves_of_topic(tmp_path, "local", HOSTILE),
        pages.moves_of_runs(tmp_path, "local", {f"cli/{HOSTILE}"}),
    ):
        assert_nothing_runs(page("Topics", part))


def test_the_topics_page_and_the_page_of_a_topic_have_it(tmp_path: Path) -> None:
    write_index(tmp_path)
    keep(tmp_path, record(ORDERS))
    indexed = read_indexed(tmp_path, "local")
    for shown in (topics_page(indexed, TopicsWanted()), topic_page(indexed, "shop.orders")):
        assert any("moving 1 of 2 partitions" in text.lower() for text in Seen(shown).texts)


def test_a_topic_of_which_a_later_run_moved_a_part_still_moves(tmp_path: Path) -> None:
    write_index(tmp_path)
    keep(tmp_path, record(ORDERS))
    sent = {"shop.orders": OutcomeStatus.DONE, "shop.gone": OutcomeStatus.DONE}
    indexed = replace(read_indexed(tmp_path, "local"), later=(LaterRun(run=RUN, environment="local", outcomes=sent),))
    assert indexed.outcomes == {"shop.orders": OutcomeStatus.MOVING, "shop.gone": OutcomeStatus.DONE}
    assert indexed.index.words(indexed.outcomes)["moving"] == 1
    keep(tmp_path, record())
    assert indexed.outcomes == sent


def test_the_throttle_of_a_topic_that_moves_is_no_difference_on_its_page(tmp_path: Path) -> None:
    throttle = {"leader.replication.throttled.replicas": "0:1", "retention.ms": "1000"}
    topic = live_topic("a", overrides=throttle)
    for shown, marked in ((replace(topic, adding={0: (9,)}), {"retention.ms"}), (topic, {*throttle})):
        live = snapshot(shown)
        TopicIndex.of(tmp_path, "local").write(head_of(live), indexed_topics(live, {"a": desired_topic("a")}, {}, {}))
        html = topic_page(read_indexed(tmp_path, "local"), "a")
        assert {name for name in throttle if f'<tr class="diff"><td><code>{name}</code>' in html} == marked


def test_the_tab_of_a_run_that_carries_moves_on_shows_them_in_place_of_a_plan(tmp_path: Path) -> None:
    model = read_plan(tmp_path, RunOf(dag_id="topic_moves_local", run_id="moves__1"))
    part = pages.moves_of_environment(keep(tmp_path, record(ORDERS)), "local")
    texts = Seen(plan_page(model, moving=[part])).texts
    assert "shop.orders" in texts
    assert not any("plan yet" in text for text in texts)
    assert "Nothing moves, and nothing is owed." in Seen(plan_page(model, moving=[None])).texts

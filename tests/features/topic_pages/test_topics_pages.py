from dataclasses import replace
from pathlib import Path

import pytest

from fakes import builders
from fakes.builders import live_topic, partition_state
from fixtures.html_seen import Seen, assert_nothing_runs
from fixtures.rich_plan import HOSTILE
from fixtures.topic_index import a_cluster, head_of, lagging, write_index
from topicops.features.topic_pages.file import TopicIndex
from topicops.features.topic_pages.indexing import indexed_topics
from topicops.features.topic_pages.on_airflow.brokers_page import broker_page, brokers_page
from topicops.features.topic_pages.on_airflow.reading import read_indexed
from topicops.features.topic_pages.on_airflow.topic_page import CAUSES_SHOWN, health_lines, topic_page
from topicops.features.topic_pages.on_airflow.topics_page import topics_page
from topicops.features.topic_pages.values import TopicsWanted


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_index(tmp_path)
    return tmp_path


def listed(home: Path, wanted: TopicsWanted | None = None) -> Seen:
    return Seen(topics_page(read_indexed(home, "local"), wanted or TopicsWanted()))


def test_the_list_has_each_topic_with_its_states_owner_file_and_last_change(home: Path) -> None:
    text = listed(home).text
    for word in ("shop.orders", "offline", "1 of 1 under-replicated", "team-shop", "configure by alice", "8 topics"):
        assert word in text


def test_a_search_says_how_many_of_all_it_found(home: Path) -> None:
    assert "1 of 8 topics" in listed(home, TopicsWanted(q="bills")).text
    assert "No topic is like that." in listed(home, TopicsWanted(q="nothing")).text


def test_more_topics_than_a_page_holds_have_a_next_page(home: Path) -> None:
    html = topics_page(read_indexed(home, "local"), TopicsWanted(most=3, first=3, q="o"))
    assert 'href="topics?q=o&amp;first=6"' in html
    assert 'href="topics?q=o"' in html


def test_an_empty_cluster_is_told_apart_from_a_search_without_result(tmp_path: Path) -> None:
    live = builders.snapshot()
    TopicIndex.of(tmp_path, "local").write(head_of(live), ())
    assert "The cluster has no topics" in listed(tmp_path).text


@pytest.mark.parametrize("content", [None, b"no database"])
def test_without_a_readable_index_each_page_says_why(tmp_path: Path, content: bytes | None) -> None:
    index = write_index(tmp_path)
    index.path.unlink() if content is None else index.path.write_bytes(content)
    pages = (
        topics_page(read_indexed(tmp_path, "local"), TopicsWanted()),
        topic_page(read_indexed(tmp_path, "local"), "shop.orders"),
        brokers_page(read_indexed(tmp_path, "local")),
        broker_page(read_indexed(tmp_path, "local"), 1),
    )
    why = "no run has read this environment's topics yet" if content is None else "cannot be read"
    assert all(why in Seen(page).text for page in pages)
    assert all(str(tmp_path) not in page for page in pages)


def test_one_topic_shows_why_it_is_not_healthy_its_file_and_its_partitions(home: Path) -> None:
    html = topic_page(read_indexed(home, "local"), "shop.items")
    text = Seen(html).text
    assert "Partition 0: broker 3 (not registered) is not in the ISR." in text
    assert f"https://forge.example/team/topics/-/blob/{'0' * 40}/topics/shop/shop.items.yaml#L4" in html
    assert "broker 1: leads, preferred leader" in html
    assert "broker 3: out of sync" in html
    assert "topicops has never changed it" in text


def test_an_unhealthy_topic_has_its_causes_what_ends_each_and_the_command_that_asks_again(home: Path) -> None:
    html = topic_page(read_indexed(home, "local"), "pay.bills")
    text = Seen(html).text
    assert 'id="why"' in html
    assert "partition 0 has no leader: it waits for broker 3, last in the ISR" in text
    assert "a leader is elected when broker 3 is back" in text
    assert "topicops why pay.bills --environment local" in text


def test_a_page_of_what_was_read_before_shows_no_command_that_changes_the_cluster(tmp_path: Path) -> None:
    stale = live_topic("stale", assignment={0: (2, 3)}, states={0: partition_state([3])})
    live = builders.snapshot(stale, racks={1: "r1", 2: "r2"})
    TopicIndex.of(tmp_path, "local").write(head_of(live), indexed_topics(live, {}, {}, {}))
    html = topic_page(read_indexed(tmp_path, "local"), "stale")
    assert "a leader is elected when broker 3 is back" in Seen(html).text
    assert not any(word in html for word in (".sh", "unclean", "last resort"))


def test_a_topic_whose_deletion_waits_says_for_which_broker(tmp_path: Path) -> None:
    going = live_topic("going", assignment={0: (1, 3)}, states={0: partition_state([1], leader=-1)})
    live = builders.snapshot(going, racks={1: "r1", 2: "r2"}, deleting={"going": 7})
    TopicIndex.of(tmp_path, "local").write(head_of(live), indexed_topics(live, {}, {}, {}))
    text = Seen(topic_page(read_indexed(tmp_path, "local"), "going")).text
    assert "Why it is still there" in text
    assert "has a replica on broker 3, which is not registered" in text


def test_a_topic_whose_deletion_was_read_without_states_has_the_command_that_says_why(tmp_path: Path) -> None:
    going = live_topic("going", assignment={0: (1, 2)}, states=None)
    live = builders.snapshot(going, racks={1: "r1", 2: "r2"}, deleting={"going": 7})
    TopicIndex.of(tmp_path, "local").write(head_of(live), indexed_topics(live, {}, {}, {}))
    html = topic_page(read_indexed(tmp_path, "local"), "going")
    assert 'id="why"' in html
    assert "topicops why going --environment local" in Seen(html).text


def test_of_many_causes_the_first_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    rows = {p: (3 + p,) for p in range(CAUSES_SHOWN + 5)}
    wide = live_topic("wide", assignment=rows, states={p: partition_state(row) for p, row in rows.items()})
    live = builders.snapshot(wide, racks={1: "r1", 2: "r2"})
    TopicIndex.of(tmp_path, "local").write(head_of(live), indexed_topics(live, {}, {}, {}))
    text = Seen(topic_page(read_indexed(tmp_path, "local"), "wide")).text
    assert text.count("never had a leader") + text.count("has no leader:") == CAUSES_SHOWN
    assert "… and 5 more causes" in text


def test_a_healthy_topic_asks_no_why(home: Path) -> None:
    assert "topicops why" not in topic_page(read_indexed(home, "local"), "shop.orders")


def test_in_the_list_a_row_of_an_unhealthy_topic_leads_to_why(home: Path) -> None:
    html = topics_page(read_indexed(home, "local"), TopicsWanted())
    links = {found["href"] for found in Seen(html).all("a") if found["href"].endswith("#why")}
    assert links == {f"topic?name={name}#why" for name in ("shop.items", "pay.bills", "old.going")}


def test_file_and_cluster_stand_side_by_side_and_the_plan_s_word_beside_them(home: Path) -> None:
    html = topic_page(read_indexed(home, "local"), "shop.moved")
    assert "<ins>5</ins>" in html
    assert "<del>3</del>" in html
    assert "plan?run_id=manual__1#b" in html


def test_a_topic_that_nobody_knows_is_no_error(home: Path) -> None:
    assert "Neither the cluster nor a file" in Seen(topic_page(read_indexed(home, "local"), "no.such")).text


def test_the_brokers_page_names_what_is_not_registered(home: Path) -> None:
    text = Seen(brokers_page(read_indexed(home, "local"))).text
    assert "2 brokers registered, 1 with replicas not registered (3); 1 replica not in sync." in text


def test_a_broker_s_page_lists_what_is_missing_because_of_it(home: Path) -> None:
    text = Seen(broker_page(read_indexed(home, "local"), 3)).text
    assert "not registered" in text
    assert "shop.items" in text
    assert "pay.bills" not in text
    assert "each of its replicas is in sync" in Seen(broker_page(read_indexed(home, "local"), 1)).text
    assert "No broker of this id" in Seen(broker_page(read_indexed(home, "local"), 99)).text


def test_hostile_text_runs_nowhere(tmp_path: Path) -> None:
    live = a_cluster()
    spec = replace(builders.desired_topic("shop.orders"), owner=HOSTILE, description=HOSTILE)
    TopicIndex.of(tmp_path, "local").write(
        replace(head_of(live), run=HOSTILE), indexed_topics(live, {spec.name: spec}, {}, {})
    )
    assert_nothing_runs(topics_page(read_indexed(tmp_path, "local"), TopicsWanted(q=HOSTILE, owner=HOSTILE)))
    assert_nothing_runs(topics_page(read_indexed(tmp_path, "local"), TopicsWanted()))
    assert_nothing_runs(topic_page(read_indexed(tmp_path, "local"), "shop.orders"))
    assert_nothing_runs(topic_page(read_indexed(tmp_path, "local"), HOSTILE))


def test_the_reasons_name_the_broker_that_is_not_registered() -> None:
    live = a_cluster()
    assert list(health_lines(live, live.topics["shop.items"])) == [
        "Partition 0: broker 3 (not registered) is not in the ISR."
    ]
    (line,) = health_lines(live, live.topics["pay.bills"])
    assert line == "Partition 0: no leader, so nobody can read or write: broker 3, its leader, is not registered."


def test_the_reasons_tell_a_slow_broker_from_a_dead_one_and_name_the_gravest_first() -> None:
    topic = live_topic(
        "a",
        assignment={0: (1, 2, 3), 1: (1, 2, 3)},
        overrides={"min.insync.replicas": "2"},
        states={0: partition_state([1]), 1: partition_state([], leader=-1)},
    )
    found = list(health_lines(builders.snapshot(topic), topic))
    assert found[0].startswith("Partition 1: no leader, so nobody can read or write: no replica in sync is alive")
    assert found[1].startswith("Partition 0: 1 in sync where min.insync.replicas asks for 2")
    assert found[2] == "Partition 0: broker 2, broker 3 (registered, and behind) are not in the ISR."


def test_nothing_is_wrong_with_a_healthy_topic() -> None:
    live = a_cluster()
    assert not list(health_lines(live, live.topics["shop.orders"]))
    assert list(health_lines(live, lagging("b")))

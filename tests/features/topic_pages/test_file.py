from datetime import timedelta
from pathlib import Path

import pytest

from fakes.builders import NOW
from fixtures.topic_index import CHANGE, a_cluster, head_of, write_index
from topicops.features.topic_pages.file import TopicIndex, indexed_environments
from topicops.features.topic_pages.values import BrokerShare, TopicsWanted
from topicops.model.errors import ArtifactError
from topicops.model.runs.results import OutcomeStatus

ALL = ["pay.bills", "shop.items", "shop.moved", "old.gone", "shop.new", "old.going", "crm.wild", "shop.orders"]


@pytest.fixture
def index(tmp_path: Path) -> TopicIndex:
    return write_index(tmp_path)


def names(index: TopicIndex, wanted: TopicsWanted) -> list[str]:
    return [row.name for row in index.page(wanted).rows]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param(TopicsWanted(), ALL, id="the worst first"),
        pytest.param(TopicsWanted(q="SHOP."), ["shop.items", "shop.moved", "shop.new", "shop.orders"], id="name"),
        pytest.param(TopicsWanted(q="gone.yaml"), ["old.gone"], id="file"),
        pytest.param(TopicsWanted(q="%"), [], id="no wildcard"),
        pytest.param(TopicsWanted(state="held"), ["old.gone"], id="state"),
        pytest.param(TopicsWanted(state="no such"), [], id="a state that is none"),
        pytest.param(TopicsWanted(owner="team-shop", state="offline"), ["pay.bills"], id="owner and state"),
        pytest.param(TopicsWanted(owner="'; DROP TABLE topics; --"), [], id="an owner that is no owner"),
        pytest.param(TopicsWanted(broker=3), ["pay.bills", "shop.items"], id="a replica on the broker"),
        pytest.param(TopicsWanted(broker=3, state="under-replicated"), ["shop.items"], id="missing because of it"),
        pytest.param(TopicsWanted(broker=1, state="under-replicated"), [], id="not because of that one"),
        pytest.param(TopicsWanted(order="partitions", most=2), ["shop.orders", "crm.wild"], id="most partitions"),
        pytest.param(TopicsWanted(order="changed", most=1), ["shop.orders"], id="last changed"),
        pytest.param(TopicsWanted(order="name", first=6), ["shop.new", "shop.orders"], id="a page further"),
        pytest.param(TopicsWanted(first=1000), [], id="a page behind the last"),
    ],
)
def test_a_page_has_what_is_wanted_in_order(index: TopicIndex, wanted: TopicsWanted, found: list[str]) -> None:
    assert names(index, wanted) == found


def test_the_counts_are_of_all_topics_whatever_is_shown(index: TopicIndex) -> None:
    page = index.page(TopicsWanted(state="held", most=1))
    assert (page.topics, page.found) == (len(ALL), 1)
    assert page.words["offline"] == 1
    assert page.owners == {"team-shop": 6}


def test_a_row_names_its_file_its_last_change_and_its_brokers(index: TopicIndex) -> None:
    (row,) = index.page(TopicsWanted(q="shop.orders")).rows
    assert (row.place, row.changed) == ("topics/shop/shop.orders.yaml:4", "2024-05-01 12:00 configure by alice")
    assert {broker: share.leaders for broker, share in row.shares.items()} == {1: 3, 2: 3}


def test_one_topic_is_read_whole(index: TopicIndex) -> None:
    topic = index.topic("shop.orders")
    assert topic is not None
    assert topic.live is not None
    assert topic.live.partitions == 6
    assert topic.desired is not None
    assert topic.last_change == CHANGE
    assert index.topic("no.such") is None


def test_brokers_are_summed_over_all_topics(index: TopicIndex) -> None:
    found = index.brokers()
    assert found[3] == BrokerShare(broker=3, replicas=2, leaders=0, missing=1, topics_missing=1)
    assert list(found) == [1, 2, 3]


def test_nothing_is_said_any_more_of_a_topic_that_was_changed_since(index: TopicIndex) -> None:
    later = {"shop.orders": OutcomeStatus.DONE, "pay.bills": OutcomeStatus.UNKNOWN, "not.there": OutcomeStatus.DONE}
    found = index.page(TopicsWanted(), later)
    rows = {row.name: row for row in found.rows}
    assert rows["shop.orders"].words == ("changed since",)
    assert rows["pay.bills"].words == ("change failed", "changed since")
    assert (rows["pay.bills"].offline, rows["pay.bills"].shares) == (0, {})
    assert (found.words["changed since"], found.words["change failed"], "offline" in found.words) == (2, 1, False)
    assert [row.name for row in index.page(TopicsWanted(state="changed since"), later).rows] == [
        "pay.bills",
        "shop.orders",
    ]
    assert not index.page(TopicsWanted(state="offline"), later).rows
    assert index.words(later) == found.words


def test_a_later_look_is_noted_and_a_new_index_forgets_it(index: TopicIndex, tmp_path: Path) -> None:
    assert index.head().looked_at is None
    for hours in (1, 2):
        index.note_look(NOW + timedelta(hours=hours), {"local": hours})
    assert index.head().looked_at == NOW + timedelta(hours=2)
    assert index.head().audit_marks == {"local": 2}
    assert write_index(tmp_path).head().looked_at is None


def test_what_the_index_knows_of_the_audit_log_goes_into_the_next_one(index: TopicIndex) -> None:
    assert index.last_changes() == {"shop.orders": CHANGE}
    assert index.head().audit_lines == 3


@pytest.mark.parametrize("content", [b"", b"no database", None])
def test_a_missing_or_damaged_index_is_one_sentence_without_a_path(tmp_path: Path, content: bytes | None) -> None:
    index = write_index(tmp_path)
    if content is None:
        index.path.unlink()
    else:
        index.path.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"^local\.sqlite: ") as caught:
        index.head()
    assert str(tmp_path) not in str(caught.value)
    assert indexed_environments(tmp_path) == ()


def test_a_writer_that_dies_leaves_the_old_index_and_no_file(tmp_path: Path) -> None:
    def broken():  # type: ignore[no-untyped-def]  # never gives a row
        raise KeyboardInterrupt
        yield

    index = write_index(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        index.write(head_of(a_cluster()), broken())
    assert index.head().environment == "local"
    assert [path.name for path in index.path.parent.iterdir()] == ["local.sqlite"]


def test_the_environments_are_those_with_an_index_by_name(tmp_path: Path) -> None:
    for name in ("prod-eu", "local"):
        write_index(tmp_path, name)
    assert indexed_environments(tmp_path) == ("local", "prod-eu")
    assert TopicIndex.of(tmp_path, "..").path.parent == tmp_path / "topic-index"

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import desired_like, live_topic
from topicops.model.errors import DiffError
from topicops.model.plans.delta import Delta, DesiredRow, LiveRow, TopicClass, TopicDelta, desired_row, live_row
from topicops.steps.planning.diff import check_conserved, compare, delta_of, diff


def desired(topic: str, **fields: object) -> DesiredRow:
    given = {"lifecycle": "present", "partitions": 3, "replication_factor": 3, "assignment_digest": None}
    return DesiredRow(topic=topic, **{**given, "configs": "{}", **fields})


def live(topic: str, **fields: object) -> LiveRow:
    given = {"partitions": 3, "replication_factor_min": 3, "replication_factor_max": 3, "assignment_digest": "aa"}
    return LiveRow(topic=topic, **{**given, "configs": "{}", **fields})


@pytest.mark.parametrize(
    ("wanted", "found", "topic_class"),
    [
        pytest.param(desired("a"), None, TopicClass.MISSING, id="desired and not live"),
        pytest.param(desired("a"), live("a"), TopicClass.SAME, id="equal"),
        pytest.param(desired("a", partitions=4), live("a"), TopicClass.DIFFERENT, id="different"),
        pytest.param(desired("a", lifecycle="absent"), live("a"), TopicClass.TOMBSTONED, id="to go, and live"),
        pytest.param(desired("a", lifecycle="absent"), None, TopicClass.RETIRED, id="to go, and gone"),
        pytest.param(desired("a", lifecycle="paused", partitions=9), live("a"), TopicClass.PAUSED, id="paused, live"),
        pytest.param(desired("a", lifecycle="paused"), None, TopicClass.PAUSED, id="paused, not live"),
        pytest.param(None, live("a"), TopicClass.UNMANAGED, id="live and in no spec"),
    ],
)
def test_every_topic_is_in_exactly_one_class(
    wanted: DesiredRow | None, found: LiveRow | None, topic_class: TopicClass
) -> None:
    delta = diff([wanted] if wanted else [], [found] if found else [])
    assert {word: count for word, count in delta.counts.items() if count} == {topic_class: 1}
    assert set(delta.counts) == set(TopicClass)
    assert len(delta.topics) == (topic_class not in (TopicClass.SAME, TopicClass.RETIRED))


@pytest.mark.parametrize(
    ("wanted", "found", "changed"),
    [
        pytest.param({"partitions": 2}, {}, {"partitions"}, id="partitions"),
        pytest.param({"replication_factor": 2}, {}, {"replication_factor"}, id="replication factor"),
        pytest.param({}, {"replication_factor_min": 2}, {"replication_factor"}, id="a partition with fewer replicas"),
        pytest.param({}, {"replication_factor_max": 4}, {"replication_factor"}, id="a partition with more replicas"),
        pytest.param({"assignment_digest": "bb"}, {}, {"assignment"}, id="another assignment by hand"),
        pytest.param({"assignment_digest": "aa"}, {}, set(), id="the assignment by hand"),
        pytest.param({"configs": '{"a":"1"}'}, {}, {"configs"}, id="configs"),
        pytest.param({"partitions": 4, "configs": "x"}, {}, {"partitions", "configs"}, id="two at once"),
    ],
)
def test_fields_that_differ_are_named(wanted: dict[str, object], found: dict[str, object], changed: set[str]) -> None:
    delta = diff([desired("a", **wanted)], [live("a", **found)])
    assert {name for row in delta.topics for name in row.changed} == changed


@pytest.mark.parametrize("lifecycle", ["paused", "absent"])
def test_a_topic_that_is_paused_or_to_go_is_not_compared(lifecycle: str) -> None:
    (row,) = diff([desired("a", lifecycle=lifecycle, partitions=99)], [live("a")]).topics
    assert not row.changed


def test_a_key_that_stands_twice_stops_the_run() -> None:
    with pytest.raises(DiffError, match="a is twice in the desired topics"):
        diff([desired("a"), desired("a")], [])
    with pytest.raises(DiffError, match="a is twice in the live topics"):
        diff([], [live("a"), live("a")])


def test_a_topic_on_neither_side_is_no_question() -> None:
    with pytest.raises(DiffError, match=r"^a topic that is neither desired nor live was to be compared$"):
        compare(None, None)


def test_rows_come_by_name_with_both_sides() -> None:
    delta = diff([desired("b", partitions=4), desired("a")], [live("b"), live("c")])
    assert [row.topic for row in delta.topics] == ["a", "b", "c"]
    assert [row.presence for row in delta.topics] == ["desired", "both", "live"]
    assert delta.topics[1].desired == desired("b", partitions=4)
    assert delta.topics[1].live == live("b")


def test_a_delta_that_lost_or_made_up_a_topic_is_refused() -> None:
    good = diff([desired("a"), desired("b")], [live("b")])
    check_conserved(good, ["a", "b"], ["b"])
    with pytest.raises(DiffError, match="3 distinct topics were compared and 2 came back"):
        check_conserved(good, ["a", "b"], ["b", "c"])
    with pytest.raises(DiffError, match="unknown ones: a"):
        check_conserved(good, ["x", "b"], ["b"])


def test_rows_that_stand_twice_or_belie_the_counts_are_refused() -> None:
    row = TopicDelta(topic="a", presence="live", topic_class=TopicClass.UNMANAGED)
    with pytest.raises(DiffError, match="twice"):
        check_conserved(delta_of([row, row]), [], ["a", "b"])
    counts = {word: int(word is TopicClass.PAUSED) for word in TopicClass}
    with pytest.raises(DiffError, match="disagree"):
        check_conserved(Delta(topics=(row,), counts=counts), [], ["a"])


NAMES = st.sampled_from("abcdefgh")


@given(wanted=st.sets(NAMES), found=st.sets(NAMES), lifecycle=st.sampled_from(["present", "absent", "paused"]))
def test_counts_add_up_to_the_distinct_topics_of_both_sides(wanted: set[str], found: set[str], lifecycle: str) -> None:
    delta = diff((desired(name, lifecycle=lifecycle) for name in wanted), map(live, found))
    assert sum(delta.counts.values()) == len(wanted | found)


def test_a_spec_made_of_the_live_topic_does_not_differ() -> None:
    topic = live_topic("orders", 6, overrides={"retention.ms": "1000"})
    assert not diff([desired_row(desired_like(topic))], [live_row(topic)]).topics

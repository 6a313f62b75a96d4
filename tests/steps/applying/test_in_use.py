"""Whether a topic that is to be deleted is in use."""

from datetime import UTC, datetime, timedelta

import pytest

from topicops.model.plans.plan import NO_RECORD, ActivityOfHiddenGroups, GroupUse, TopicActivity
from topicops.steps.applying.precondition import activity_reason
from topicops.steps.before_deletes import time_text

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
DAY, HOUR = timedelta(days=1), 3_600_000
AT_REST = TopicActivity(end_offsets={0: 5, 1: 7}, groups=())


def ends(offsets: dict[int, int] | None, *groups: str) -> TopicActivity:
    return TopicActivity(end_offsets=offsets, groups=groups)


def last_record(ms: int | None) -> TopicActivity:
    return TopicActivity(end_offsets={0: 5, 1: 7}, groups=(), last_record_ms=ms)


@pytest.mark.parametrize(
    ("planned", "now", "reason"),
    [
        pytest.param(AT_REST, AT_REST, None, id="at rest"),
        pytest.param(ends({0: 5, 1: 7}, "left-since"), AT_REST, None, id="a group that has gone since"),
        pytest.param(None, AT_REST, "its end offsets were not read when the plan was made (TOP437)", id="never asked"),
        pytest.param(
            ends(None), AT_REST, "its end offsets were not read when the plan was made (TOP437)", id="unread then"
        ),
        pytest.param(AT_REST, None, "its end offsets cannot be read now (TOP437)", id="no answer now"),
        pytest.param(AT_REST, ends(None), "its end offsets cannot be read now (TOP437)", id="unread now"),
        pytest.param(
            AT_REST,
            ends({0: 6, 1: 7}),
            "records were written since the plan (TOP409): end offset of partition 0: planned 5, live 6",
            id="written",
        ),
        pytest.param(
            AT_REST,
            ends({0: 5, 1: 8, 2: 0}),
            "records were written since the plan (TOP409): end offset of partition 1: planned 7, live 8, "
            "end offset of partition 2: planned none, live 0",
            id="written and grown",
        ),
        pytest.param(
            AT_REST,
            ends({0: 5}),
            "records were written since the plan (TOP409): end offset of partition 1: planned 7, live none",
            id="a partition without an answer",
        ),
        pytest.param(
            AT_REST,
            TopicActivity(end_offsets={0: 5, 1: 7}, groups=None),
            "its consumer groups cannot be read (TOP437)",
            id="groups unread",
        ),
        pytest.param(
            AT_REST, ends({0: 5, 1: 7}, "b", "a"), "consumer groups use it: a, b (TOP410)", id="groups at work"
        ),
        pytest.param(
            AT_REST,
            TopicActivity(
                end_offsets={0: 5, 1: 7},
                groups=("billing", "seen"),
                group_uses={"billing": GroupUse(state="Stable", lag=12), "seen": GroupUse(state="", lag=None)},
            ),
            "consumer groups use it: billing (Stable, lag 12), seen (no commits) (TOP410)",
            id="groups with their state",
        ),
        pytest.param(
            AT_REST,
            TopicActivity(
                end_offsets={0: 5, 1: 7},
                groups=("workers",),
                group_uses={
                    "workers": GroupUse(state="Stable", lag=None, type="quorum", unread="its type is not known")
                },
            ),
            "group workers of type quorum cannot be read: its type is not known (TOP410)",
            id="a group of a type that is not known",
        ),
    ],
)
def test_a_topic_rests_only_if_everything_says_so(
    planned: TopicActivity | None, now: TopicActivity | None, reason: str | None
) -> None:
    found = activity_reason(planned, now, rests_for=timedelta(0), at=NOW)

    assert (found and found.partition("; ")[0]) == reason


def test_the_way_out_of_groups_that_old_brokers_hide_is_a_look_by_hand() -> None:
    hidden = ActivityOfHiddenGroups(end_offsets={0: 5, 1: 7}, groups=None)

    assert activity_reason(AT_REST, hidden, rests_for=timedelta(0), at=NOW) == (
        "the brokers do not tell, as Kafka's own do since 2.3, whether the reader sees every consumer group (TOP437); "
        "check by hand that no group uses it, then set policy.deleteActive: allow"
    )


def emptied(kept_ms: int | None, *, newest: int = NO_RECORD) -> TopicActivity:
    return TopicActivity(end_offsets={0: 5, 1: 7}, groups=(), last_record_ms=newest, emptied=(1,), kept_ms=kept_ms)


@pytest.mark.parametrize(
    ("now", "rests_for", "reason"),
    [
        pytest.param(last_record(NOW_MS - 25 * HOUR), DAY, None, id="older than a day"),
        pytest.param(last_record(NOW_MS - 24 * HOUR), DAY, None, id="exactly a day old"),
        pytest.param(
            last_record(NOW_MS - 23 * HOUR), DAY, "its last record is of 2026-01-01T13:00:00Z", id="of yesterday"
        ),
        pytest.param(
            last_record(NOW_MS + HOUR), DAY, "its last record is of 2026-01-02T13:00:00Z", id="dated in the future"
        ),
        pytest.param(
            last_record(1 << 60),
            DAY,
            "its last record is of 1152921504606846976 ms since 1970",
            id="beyond any calendar",
        ),
        pytest.param(last_record(NO_RECORD), DAY, None, id="no record is left"),
        pytest.param(last_record(None), DAY, "the time of its last record cannot be read (TOP437)", id="not known"),
        pytest.param(last_record(None), timedelta(0), None, id="not known, and end offsets alone count"),
        pytest.param(last_record(NOW_MS), timedelta(0), None, id="of now, and end offsets alone count"),
        pytest.param(last_record(NOW_MS - 25 * HOUR), timedelta.max, "its last record is of", id="rests for ever"),
        pytest.param(
            emptied(1000), DAY, "partition 1 holds none of its records any more (retention.ms 1s)", id="emptied"
        ),
        pytest.param(emptied(None), DAY, "partition 1 had records, and the brokers tell the time of none", id="untold"),
        pytest.param(emptied(None), timedelta(0), None, id="emptied, and end offsets alone count"),
        pytest.param(emptied(24 * HOUR), DAY, None, id="emptied long enough ago"),
        pytest.param(emptied(24 * HOUR - 1), DAY, "partition 1 holds none", id="emptied a little too short ago"),
        pytest.param(emptied(1000, newest=NOW_MS - 48 * HOUR), DAY, "partition 1 holds none", id="one of the two"),
        pytest.param(emptied(24 * HOUR, newest=NOW_MS), DAY, "its last record is of", id="the other has a new record"),
    ],
)
def test_a_topic_rests_only_if_its_last_record_is_old_enough(
    now: TopicActivity, rests_for: timedelta, reason: str | None
) -> None:
    found = activity_reason(AT_REST, now, rests_for=rests_for, at=NOW)

    assert found is None if reason is None else str(found).startswith(reason)


def test_a_wrong_clock_keeps_every_topic_that_ever_had_a_record() -> None:
    never = TopicActivity(end_offsets={0: 0}, groups=(), last_record_ms=NO_RECORD)
    old = last_record(NOW_MS - 48 * HOUR)

    found = [
        activity_reason(topic, topic, rests_for=DAY, at=NOW, clock_problem="it is wrong") for topic in (old, never)
    ]

    assert found == ["it is wrong", None]


def test_who_cannot_be_asked_is_no_reason_to_delete_what_may_be_in_use() -> None:
    unread = activity_reason(AT_REST, last_record(None), rests_for=DAY, at=NOW)

    assert "deleteActive" not in str(unread)
    assert "policy.restsFor: 0s compares the end offsets alone" in str(unread)


def test_a_time_is_written_as_in_other_texts() -> None:
    assert time_text(1_700_000_000_000) == "2023-11-14T22:13:20Z"

"""Whether a topic that is to be deleted is in use."""

import pytest

from topicops.model.plans.plan import TopicActivity
from topicops.steps.applying.in_use import activity_reason

AT_REST = TopicActivity(end_offsets={0: 5, 1: 7}, groups=())


def ends(offsets: dict[int, int] | None, *groups: str) -> TopicActivity:
    return TopicActivity(end_offsets=offsets, groups=groups)


@pytest.mark.parametrize(
    ("planned", "now", "reason"),
    [
        pytest.param(AT_REST, AT_REST, None, id="at rest"),
        pytest.param(ends({0: 5, 1: 7}, "left-since"), AT_REST, None, id="a group that has gone since"),
        pytest.param(None, AT_REST, "its end offsets were not read when the plan was made (TOP409)", id="never asked"),
        pytest.param(
            ends(None), AT_REST, "its end offsets were not read when the plan was made (TOP409)", id="unread then"
        ),
        pytest.param(AT_REST, None, "its end offsets cannot be read now (TOP409)", id="no answer now"),
        pytest.param(AT_REST, ends(None), "its end offsets cannot be read now (TOP409)", id="unread now"),
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
            "its consumer groups cannot be read (TOP410)",
            id="groups unread",
        ),
        pytest.param(
            AT_REST, ends({0: 5, 1: 7}, "b", "a"), "consumer groups use it (TOP410): a, b", id="groups at work"
        ),
    ],
)
def test_a_topic_rests_only_if_everything_says_so(
    planned: TopicActivity | None, now: TopicActivity | None, reason: str | None
) -> None:
    assert activity_reason(planned, now) == reason

"""Each change held against what stands under its topic's name: what holds, what is so already, and what moved."""

from dataclasses import replace

import pytest

from fakes.builders import live_topic, round_robin, topic_id
from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic, reassign_topic
from topicops.model.cluster.snapshot import LiveTopic, TopicTraces
from topicops.model.json_types import assignment_digest
from topicops.model.plans.changes import Change, ExpandTopic
from topicops.steps.applying.precondition import Match, compare

PLANNED = live_topic("a", overrides={"retention.ms": "5"})
GROWN = replace(PLANNED, assignment=round_robin(6))
CREATE = create_topic("a", (1, 2), (2, 3), configs={"retention.ms": "5"})
CREATED = live_topic("a", assignment={0: (1, 2), 1: (2, 3)}, overrides={"retention.ms": " 05"})
EXPAND = expand_topic(PLANNED, (1, 2, 3), (2, 3, 1))
EXPANDED = replace(PLANNED, assignment={**round_robin(3), 3: (1, 2, 3), 4: (2, 3, 1)})
CONFIGURE = configure_topic(PLANNED, {"retention.ms": "9", "segment.ms": "7", "flush.ms": None})
CONFIGURED = replace(PLANNED, overrides={"retention.ms": "9", "segment.ms": "7"})
DELETE = delete_topic(PLANNED)
MOVE = reassign_topic(PLANNED, (1, 2, 4), (2, 3, 1), (1, 3, 2))
MOVED = replace(PLANNED, assignment={0: (1, 2, 4), 1: (2, 3, 1), 2: (1, 3, 2)})

OTHER_ID = replace(PLANNED, topic_id="another-id")
MOVED_ROW = replace(PLANNED, assignment={**round_robin(3), 1: (3, 2, 1)})
UNSTABLE = replace(PLANNED, unstable=True)
REASSIGNING = replace(PLANNED, adding={0: (4,)})


def traces(live: LiveTopic | None, *, is_deleting: bool = False) -> TopicTraces:
    return TopicTraces(live=live, has_config_znode=live is not None, is_deleting=is_deleting)


GONE = traces(None)
IDENTITY_MOVED = f"identity: planned {topic_id('a')}, live another-id"
MARKED = "topic: planned present, live marked for deletion"
ABSENT = "topic: planned present, live absent"
RUNNING = "reassignment: planned none, live running"
OF_MOVED = [
    "replicas of partition 0: planned [1, 2, 3], live [1, 2, 4]",
    "replicas of partition 2: planned [3, 1, 2], live [1, 3, 2]",
]
RESTLESS = "topic: planned stable, live changing while it is read"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param(CREATE, GONE, id="create: nothing there"),
        pytest.param(
            CREATE, TopicTraces(live=None, has_config_znode=True, is_deleting=False), id="create: a config left over"
        ),
        pytest.param(EXPAND, traces(PLANNED), id="expand: as planned"),
        pytest.param(EXPAND, traces(replace(PLANNED, overrides={})), id="expand: its configs are another matter"),
        pytest.param(CONFIGURE, traces(PLANNED), id="configure: as planned"),
        pytest.param(
            CONFIGURE, traces(replace(PLANNED, overrides={"retention.ms": " 5 "})), id="configure: another spelling"
        ),
        pytest.param(
            CONFIGURE,
            traces(replace(PLANNED, overrides={"retention.ms": "5", "index.interval.bytes": "1"})),
            id="configure: an override that it does not touch",
        ),
        pytest.param(CONFIGURE, traces(GROWN), id="configure: its partitions are another matter"),
        pytest.param(CONFIGURE, traces(REASSIGNING), id="configure: its replicas are another matter"),
        pytest.param(MOVE, traces(PLANNED), id="reassign: as planned"),
        pytest.param(MOVE, traces(MOVED_ROW), id="reassign: another partition is another matter"),
        pytest.param(MOVE, traces(GROWN), id="reassign: more partitions are another matter"),
        pytest.param(DELETE, traces(PLANNED), id="delete: as planned"),
        pytest.param(DELETE, traces(MOVED_ROW), id="delete: its replicas are another matter"),
        pytest.param(DELETE, traces(replace(PLANNED, overrides={})), id="delete: its configs are another matter"),
    ],
)
def test_a_change_may_be_sent_while_all_that_it_depends_on_is_as_planned(change: Change, found: TopicTraces) -> None:
    comparison = compare(change, found)
    assert (comparison.match, comparison.differences) == (Match.BEFORE, ())


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param(CREATE, traces(CREATED), id="create"),
        pytest.param(EXPAND, traces(EXPANDED), id="expand"),
        pytest.param(CONFIGURE, traces(CONFIGURED), id="configure"),
        pytest.param(MOVE, traces(MOVED), id="reassign"),
        pytest.param(DELETE, GONE, id="delete: gone"),
        pytest.param(DELETE, traces(PLANNED, is_deleting=True), id="delete: under way"),
    ],
)
def test_what_is_so_already_is_not_sent_again(change: Change, found: TopicTraces) -> None:
    assert compare(change, found).match is Match.AFTER


@pytest.mark.parametrize(
    ("change", "found", "differences"),
    [
        pytest.param(
            CREATE,
            traces(None, is_deleting=True),
            ["topic: planned absent, live marked for deletion"],
            id="create: marked for deletion",
        ),
        pytest.param(
            CREATE,
            traces(CREATED, is_deleting=True),
            ["topic: planned absent, live marked for deletion"],
            id="create: there, and marked for deletion",
        ),
        pytest.param(
            CREATE,
            traces(replace(CREATED, assignment={0: (1, 3)}, overrides={"retention.ms": "6", "flush.ms": "1"})),
            [
                "topic: planned absent, live present",
                "partitions: planned 2, live 1",
                "replicas of partition 0: planned [1, 2], live [1, 3]",
                "flush.ms: planned not set, live 1",
                "retention.ms: planned 5, live 6",
            ],
            id="create: another program made one",
        ),
        pytest.param(
            CREATE,
            traces(replace(CREATED, unstable=True)),
            ["topic: planned absent, live present", RESTLESS],
            id="create: there, and restless",
        ),
        pytest.param(
            CREATE,
            traces(replace(CREATED, removing={0: (2,)})),
            ["topic: planned absent, live present", RUNNING],
            id="create: there, and in motion",
        ),
        pytest.param(EXPAND, GONE, [ABSENT], id="expand: gone"),
        pytest.param(EXPAND, traces(OTHER_ID), [IDENTITY_MOVED], id="expand: made again"),
        pytest.param(EXPAND, traces(GROWN), ["partitions: planned 3, live 6"], id="expand: grown otherwise"),
        pytest.param(
            EXPAND,
            traces(replace(EXPANDED, topic_id="another-id")),
            [IDENTITY_MOVED, "partitions: planned 3, live 5"],
            id="expand: made again with as many",
        ),
        pytest.param(
            EXPAND,
            traces(MOVED_ROW),
            ["replicas of partition 1: planned [2, 3, 1], live [3, 2, 1]"],
            id="expand: replicas moved",
        ),
        pytest.param(
            EXPAND,
            traces(replace(EXPANDED, assignment={**EXPANDED.assignment, 1: (3, 2, 1)})),
            ["partitions: planned 3, live 5"],
            id="expand: done by another program, and replicas moved",
        ),
        pytest.param(EXPAND, traces(PLANNED, is_deleting=True), [MARKED], id="expand: marked for deletion"),
        pytest.param(EXPAND, traces(REASSIGNING), [RUNNING], id="expand: in motion"),
        pytest.param(EXPAND, traces(UNSTABLE), [RESTLESS], id="expand: restless"),
        pytest.param(CONFIGURE, GONE, [ABSENT], id="configure: gone"),
        pytest.param(CONFIGURE, traces(OTHER_ID), [IDENTITY_MOVED], id="configure: made again"),
        pytest.param(
            CONFIGURE,
            traces(replace(CONFIGURED, topic_id="another-id")),
            [IDENTITY_MOVED, "retention.ms: planned 5, live 9", "segment.ms: planned not set, live 7"],
            id="configure: made again with the wanted values",
        ),
        pytest.param(CONFIGURE, traces(PLANNED, is_deleting=True), [MARKED], id="configure: marked for deletion"),
        pytest.param(
            CONFIGURE,
            traces(replace(PLANNED, overrides={"segment.ms": "8", "flush.ms": "1"})),
            [
                "flush.ms: planned not set, live 1",
                "retention.ms: planned 5, live not set",
                "segment.ms: planned not set, live 8",
            ],
            id="configure: every override that it touches",
        ),
        pytest.param(
            CONFIGURE,
            traces(replace(PLANNED, overrides={"retention.ms": "9"})),
            ["retention.ms: planned 5, live 9"],
            id="configure: half of it is so already",
        ),
        pytest.param(MOVE, GONE, [ABSENT], id="reassign: gone"),
        pytest.param(MOVE, traces(OTHER_ID), [IDENTITY_MOVED], id="reassign: made again"),
        pytest.param(
            MOVE,
            traces(replace(MOVED, topic_id="another-id")),
            [IDENTITY_MOVED, *OF_MOVED],
            id="reassign: made again where it was to be",
        ),
        pytest.param(
            MOVE,
            traces(replace(PLANNED, assignment={**round_robin(3), 2: (1, 3, 2)})),
            ["replicas of partition 2: planned [3, 1, 2], live [1, 3, 2]"],
            id="reassign: half of it is so already",
        ),
        pytest.param(
            MOVE,
            traces(replace(PLANNED, assignment={0: (1, 2, 3)})),
            ["partitions: planned 2 to move, 1 of them not live"],
            id="reassign: a partition is gone",
        ),
        pytest.param(MOVE, traces(REASSIGNING), [RUNNING], id="reassign: in motion"),
        pytest.param(
            MOVE, traces(replace(MOVED, removing={1: (1,)})), [RUNNING, *OF_MOVED], id="reassign: done, in motion"
        ),
        pytest.param(MOVE, traces(PLANNED, is_deleting=True), [MARKED], id="reassign: marked for deletion"),
        pytest.param(MOVE, traces(UNSTABLE), [RESTLESS], id="reassign: restless"),
        pytest.param(DELETE, traces(OTHER_ID), [IDENTITY_MOVED], id="delete: made again"),
        pytest.param(DELETE, traces(OTHER_ID, is_deleting=True), [IDENTITY_MOVED], id="delete: made again, and marked"),
        pytest.param(DELETE, traces(GROWN), ["partitions: planned 3, live 6"], id="delete: grown"),
        pytest.param(DELETE, traces(REASSIGNING), [RUNNING], id="delete: in motion"),
        pytest.param(DELETE, traces(UNSTABLE), [RESTLESS], id="delete: restless"),
    ],
)
def test_what_moved_is_said_field_by_field(change: Change, found: TopicTraces, differences: list[str]) -> None:
    comparison = compare(change, found)
    assert (comparison.match, list(comparison.differences)) == (Match.CHANGED, differences)


WITHOUT_ID = replace(PLANNED, topic_id=None)
PLANNED_WITHOUT_ID = (
    expand_topic(WITHOUT_ID, (1, 2, 3)),
    configure_topic(WITHOUT_ID, {"retention.ms": "9"}),
    delete_topic(WITHOUT_ID),
)


@pytest.mark.parametrize("change", PLANNED_WITHOUT_ID, ids=lambda change: change.action)
def test_without_topic_ids_a_topic_made_again_is_told_by_its_czxid(change: Change) -> None:
    comparison = compare(change, traces(replace(WITHOUT_ID, czxid=200)))
    assert comparison.differences == ("identity: planned czxid:100, live czxid:200",)


@pytest.mark.parametrize("change", PLANNED_WITHOUT_ID, ids=lambda change: change.action)
def test_a_topic_that_got_its_id_since_the_plan_is_the_same_topic(change: Change) -> None:
    """Brokers give each topic an id when their protocol is raised; the znode stays, and its czxid."""
    assert compare(change, traces(PLANNED)).match is Match.BEFORE
    assert compare(change, traces(replace(PLANNED, czxid=200))).differences[0].startswith("identity: planned czxid:100")


def test_rows_without_the_planned_ones_are_told_apart_by_their_digest() -> None:
    """As in plans of format 1.0, which do not hold the rows that were live."""
    old = replace(EXPAND, assignment_before={})
    planned, live = assignment_digest(PLANNED.assignment), assignment_digest(MOVED_ROW.assignment)
    assert compare(old, traces(MOVED_ROW)).differences == (f"assignment: planned digest {planned}, live {live}",)
    assert compare(old, traces(PLANNED)).match is Match.BEFORE


def test_partition_ids_that_changed_under_the_same_count_are_noticed() -> None:
    shifted = replace(PLANNED, assignment={0: (1, 2, 3), 1: (2, 3, 1), 7: (3, 1, 2)})
    assert compare(EXPAND, traces(shifted)).differences[0].startswith("assignment: planned digest ")


def differences_of_a_turned_topic(partitions: int) -> tuple[str, ...]:
    large = live_topic("a", partitions)
    turned = replace(large, assignment={p: (row[1], row[0], row[2]) for p, row in large.assignment.items()})
    return compare(expand_topic(large, (1, 2, 3)), traces(turned)).differences


def test_a_topic_that_moved_as_a_whole_is_told_in_a_few_lines() -> None:
    assert len(differences_of_a_turned_topic(10)) == 10
    differences = differences_of_a_turned_topic(40)
    assert len(differences) == 11
    assert differences[0] == "replicas of partition 0: planned [1, 2, 3], live [2, 1, 3]"
    assert differences[-1] == "replicas of 30 more partitions: changed as well"


def test_a_reassignment_that_ended_where_the_plan_expected_it_does_not_make_an_expansion_stale() -> None:
    during = replace(PLANNED, assignment={**round_robin(3), 0: (1, 2, 3, 4)}, removing={0: (4,)})
    assert compare(expand_topic(during, (1, 2, 3)), traces(PLANNED)).match is Match.BEFORE


def test_without_a_precondition_the_values_before_are_what_must_still_be_true() -> None:
    old = replace(CONFIGURE, precondition=replace(CONFIGURE.precondition, overrides=None))
    assert compare(old, traces(PLANNED)).match is Match.BEFORE
    assert compare(old, traces(replace(PLANNED, overrides={"retention.ms": "6"}))).differences == (
        "retention.ms: planned 5, live 6",
    )


@pytest.mark.parametrize(
    "blind",
    [
        pytest.param(replace(EXPAND, precondition=replace(EXPAND.precondition, assignment_digest=None)), id="rows"),
        pytest.param(replace(EXPAND, precondition=replace(EXPAND.precondition, identity=None)), id="identity"),
    ],
)
def test_nothing_hangs_on_what_a_plan_does_not_know(blind: ExpandTopic) -> None:
    moved = MOVED_ROW if blind.precondition.assignment_digest is None else OTHER_ID
    assert compare(blind, traces(moved)).match is Match.BEFORE


@pytest.mark.parametrize(
    "change", [EXPAND, DELETE, replace(DELETE, topic_id=None)], ids=["expand", "delete", "by name"]
)
def test_a_move_that_only_the_brokers_znode_tells_of_holds_a_change_back(change: Change) -> None:
    moving = TopicTraces(live=PLANNED, has_config_znode=True, is_deleting=False, is_in_reassignment=True)

    assert compare(change, moving).differences == (RUNNING,)


def test_a_topic_that_a_reassignment_still_names_is_not_gone() -> None:
    assert not TopicTraces(live=None, has_config_znode=False, is_deleting=False, is_in_reassignment=True).is_gone


EVERYTHING = {"retention.ms": "5", "segment.ms": None, "flush.ms": None}
WHOLE = replace(CONFIGURE, precondition=replace(CONFIGURE.precondition, overrides=EVERYTHING, all_overrides=True))


@pytest.mark.parametrize(
    ("live", "differences"),
    [
        pytest.param(PLANNED, (), id="as planned"),
        pytest.param(
            replace(PLANNED, overrides={"retention.ms": "5", "index.interval.bytes": "1"}),
            ("index.interval.bytes: planned not set, live 1",),
            id="an override that the request would remove",
        ),
        pytest.param(REASSIGNING, (RUNNING,), id="throttles that the request would remove"),
        pytest.param(OTHER_ID, (IDENTITY_MOVED,), id="another topic"),
    ],
)
def test_a_request_that_replaces_all_overrides_needs_all_of_them_as_planned(
    live: LiveTopic, differences: tuple[str, ...]
) -> None:
    assert compare(WHOLE, traces(live)).differences == differences

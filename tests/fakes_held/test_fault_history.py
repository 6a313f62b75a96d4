"""The rules that fault runs are held to find what they are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fakes.builders import live_topic
from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic, rows
from fixtures.fault_history import KILLED, FaultHistory, TopicLook, violations
from fixtures.request_log import Seen
from topicops.model.plans.changes import Action, Change
from topicops.model.runs.audit import FIRST, AuditLine
from topicops.model.runs.results import OutcomeStatus

GROW = live_topic("grow", assignment=rows((1, 2)))
TUNED = live_topic("tuned", assignment=rows((1, 2)))
OLD = live_topic("old", assignment=rows((1, 2)))
CHANGES: Sequence[Change] = (
    create_topic("new", (1, 2), configs={"retention.ms": "1"}),
    expand_topic(GROW, (2, 1)),
    configure_topic(TUNED, {"retention.ms": "2"}),
    delete_topic(OLD),
)
BEFORE = TopicLook(topic_id="live", assignment=rows((1, 2)), overrides={}, topic_version=0, config_version=0)
TUNED_LOOK = replace(BEFORE, overrides={"retention.ms": "2"}, config_version=1)
OLD_LOOK = replace(BEFORE, topic_id=OLD.topic_id)


def seen(action: Action, topic: str, asked: dict[str, object], *, error: int = 0, topic_id: str | None = None) -> Seen:
    return Seen(action=action, topic=topic, topic_id=topic_id, error=error, asked=asked)


REQUESTS = {
    "create": seen(
        "create",
        "new",
        {
            "assignments": [{"partitionIndex": 0, "brokerIds": [1, 2]}],
            "configs": [{"name": "retention.ms", "value": "1"}],
        },
    ),
    "expand": seen("expand", "grow", {"count": 2, "assignments": [{"brokerIds": [2, 1]}]}),
    "configure": seen("configure", "tuned", {"configs": [{"name": "retention.ms", "value": "2"}]}),
    "delete": seen("delete", "old", {}, topic_id=OLD.topic_id),
}


def line(change: Change) -> AuditLine:
    return AuditLine(
        n=1, previous=FIRST, at=datetime(2026, 1, 1, tzinfo=UTC), environment="local", run="cli/1", plan="",
        commit=None, approver=None, principal="", action=change.action, topic=change.topic, digest="", request={},
        requests=1, answer="accepted", outcome=OutcomeStatus.DONE, topic_id_before=None, topic_id_after=None,
    )  # fmt: skip


GOOD = FaultHistory(
    changes=CHANGES,
    requests=[*REQUESTS.values()],
    before={"new": None, "grow": BEFORE, "tuned": BEFORE, "old": OLD_LOOK, "other": BEFORE},
    after={
        "new": replace(BEFORE, overrides={"retention.ms": "1"}),
        "grow": replace(BEFORE, assignment=rows((1, 2), (2, 1)), topic_version=1),
        "tuned": TUNED_LOOK,
        "old": None,
        "other": BEFORE,
    },
    audit=[line(change) for change in CHANGES],
    audit_problems=[],
    statuses=[KILLED, 0],
)


def after(**looks: TopicLook | None) -> FaultHistory:
    return replace(GOOD, after={**GOOD.after, **looks})


def with_requests(*more: Seen) -> FaultHistory:
    return replace(GOOD, requests=[*GOOD.requests, *more])


def test_a_run_as_it_should_be_breaks_nothing() -> None:
    assert violations(GOOD) == []


@pytest.mark.parametrize(
    ("history", "rule"),
    [
        pytest.param(with_requests(seen("delete", "other", {}, topic_id="live")), "I1", id="a delete in no plan"),
        pytest.param(with_requests(seen("delete", "old", {}, topic_id="another", error=3)), "I1", id="by another id"),
        pytest.param(
            with_requests(replace(REQUESTS["expand"], error=37, asked={"count": 3, "assignments": []})),
            "I1",
            id="another total",
        ),
        pytest.param(after(other=None), "I1", id="a topic in no plan is gone"),
        pytest.param(after(grow=replace(BEFORE, assignment={})), "I3", id="fewer partitions"),
        pytest.param(with_requests(REQUESTS["create"]), "I5", id="fulfilled twice"),
        pytest.param(
            after(tuned=replace(BEFORE, overrides={"retention.ms": "2"}, config_version=2)), "I5", id="written twice"
        ),
        pytest.param(after(new=None), "I4", id="not there after success"),
        pytest.param(after(old=OLD_LOOK), "I4", id="there after its delete"),
        pytest.param(replace(GOOD, statuses=[4]), "I13", id="nothing was changed, says the status"),
        pytest.param(replace(GOOD, audit=GOOD.audit[1:]), "I16", id="a line is missing"),
        pytest.param(replace(GOOD, audit=[*GOOD.audit, line(CHANGES[0])]), "I16", id="two lines for one"),
        pytest.param(replace(GOOD, audit_problems=["line 2"]), "I16", id="a broken chain"),
    ],
)
def test_what_is_broken_is_found(history: FaultHistory, rule: str) -> None:
    assert {found.partition(":")[0] for found in violations(history)} >= {rule}


def test_a_run_that_was_killed_may_have_lines_of_audit_to_come() -> None:
    assert violations(replace(GOOD, audit=[], statuses=[KILLED])) == []


def test_what_another_hand_wrote_is_not_counted_against_us() -> None:
    moved = after(tuned=replace(TUNED_LOOK, config_version=5))
    assert violations(replace(moved, meddled=frozenset({"tuned"}))) == []

"""The checker of what Airflow shows: it finds each kind of false statement, and takes no true one for false."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fixtures.fault_history import TopicLook
from fixtures.truth import Down, Shown, World, false_statements, not_said, not_settled
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.results import OutcomeStatus
from topicops.steps.reporting.markup import Html, pill, table, tag, together

AT = datetime(2026, 11, 27, 6, 0, tzinfo=UTC)
DAG, RUN, OTHER = "topic_pipeline_killed", "topic_pipeline_killed/one", "topic_pipeline_killed/two"
DIGEST = "4084ab12cd34ffff"


def line(outcome: OutcomeStatus = OutcomeStatus.DONE, run: str = RUN) -> AuditLine:
    return AuditLine(
        n=1, previous="", at=AT, environment="killed", run=run, plan="p", commit=None, approver=None,
        principal="User:topicops", action="create", topic="new", digest=DIGEST, request={}, requests=1, answer="",
        outcome=outcome, topic_id_before=None, topic_id_after="id-new",
    )  # fmt: skip


def look(partitions: int, topic_id: str) -> TopicLook:
    assignment = dict.fromkeys(range(partitions), (1, 2, 3))
    return TopicLook(topic_id=topic_id, assignment=assignment, overrides={}, topic_version=0, config_version=0)


def world() -> World:
    return World(
        looks={"new": look(2, "id-new"), "old": look(1, "id-old"), "gone": None},
        brokers=3,
        down=(),
        effects=Counter({("create", "new"): 1}),
        audit=(line(),),
        runs={RUN: "success"},
    )


def page(*content: Html | None, at: datetime = AT, warning: str = "") -> str:
    head = tag("p", f"As read at {at:%Y-%m-%d %H:%M:%S} UTC (now) by run one.", cls="muted")
    return tag("main", head, tag("p", warning, cls="card warn") if warning else None, *content).text


def topics(*rows: tuple[str, str, int], warning: str = "") -> str:
    body = ([tag("a", name), pill(word, "good"), str(partitions)] for name, word, partitions in rows)
    return page(table(("topic", "state", "partitions"), body, cls="topics"), warning=warning)


def topic(partitions: str, topic_id: str, *, word: str = "healthy", done: int = 0) -> str:
    life = ([f"{AT}", "create", pill("done", "good"), "User:topicops", "one"] for _ in range(done))
    values = [["partitions", "2", partitions], ["topic id", "", topic_id]]
    shown = tag("p", pill(word, "good"), cls="verdict")
    return page(shown, table(("value", "file", "cluster"), values, cls="rows"), table("abcde", life))


def brokers(said: str, at: datetime = AT) -> str:
    return page(tag("p", said, cls="verdict"), at=at)


def first(state: str, *words: str) -> str:
    link = tag("a", "killed", href=f"dags/{DAG}/topics")
    cells = [together(link, *(pill(word, "bad") for word in words)), "", "read now", pill(state, "good")]
    return tag("main", table("abcd", [cells])).text


def plan(state: str) -> str:
    subject = together(tag("span", "+ create"), tag("div", "new"), tag("code", "4084", title=DIGEST, cls="digest"))
    return tag("main", table("abcd", [[subject, "", "", pill(state, "good")]], cls="changes")).text


def shown() -> Shown:
    return Shown(
        first=first("success", "well"),
        topics=topics(("new", "healthy", 2), ("old", "healthy", 1)),
        brokers=brokers("At 06:00: 3 brokers registered; all replicas in sync."),
        topic={"new": topic("2", "id-new", done=1), "old": topic("1", "id-old")},
        plan={RUN: plan("done")},
        quality={RUN: quality(AT)},
        notes={RUN: "Applied and verified: 1 done."},
        told=[told("applied", "Applied and verified: 1 done. create new.")],
    )


def quality(at: datetime) -> str:
    said = tag("p", "All 27 rules hold.", cls="verdict")
    return tag("main", said, tag("p", f"{at:%Y-%m-%d %H:%M:%S} UTC")).text


def told(kind: str, verdict: str, run: str = RUN) -> dict[str, str]:
    return {"kind": kind, "verdict": verdict, "run": run, "environment": "killed"}


def test_what_is_so_is_not_called_false() -> None:
    assert false_statements(shown(), world()) == set()
    assert not_said(shown(), world()) == set()
    assert not_settled(shown(), world()) == set()


Lie = Callable[[Shown, World], tuple[Shown, World]]
AWAY = Down(broker=2, since=AT - timedelta(minutes=5), until=None)
LIES: dict[str, Lie] = {
    "new is called missing": lambda s, w: (replace(s, topics=topics(("new", "missing", 0), ("old", "healthy", 1))), w),
    "old is called healthy, and is not there": lambda s, w: (s, replace(w, looks={**w.looks, "old": None})),
    "old has 1 partitions there": lambda s, w: (s, replace(w, looks={**w.looks, "old": look(3, "id-old")})),
    "new is in the cluster and not in the list": lambda s, w: (replace(s, topics=topics(("old", "healthy", 1))), w),
    "its page says 1 partitions": lambda s, w: (s, replace(w, looks={**w.looks, "old": look(3, "id-old")})),
    "its page shows the topic id id-old": lambda s, w: (s, replace(w, looks={**w.looks, "old": look(1, "another")})),
    "its page shows partitions of the cluster": lambda s, w: (s, replace(w, looks={**w.looks, "old": None})),
    "its page tells of create": lambda s, w: (replace(s, topic={"new": topic("2", "id-new", done=2)}), w),
    "its page does not tell of create": lambda s, w: (replace(s, topic={"new": topic("2", "id-new")}), w),
    "3 are called registered": lambda s, w: (s, replace(w, down=(AWAY,))),
    "all replicas are called in sync": lambda s, w: (s, replace(w, down=(AWAY,))),
    "does not say how many brokers": lambda s, w: (replace(s, brokers=brokers("")), w),
    "the newest run is called success": lambda s, w: (s, replace(w, runs={RUN: "failed"})),
    "its row does not say so": lambda s, w: (replace(s, first=first("failed")), replace(w, runs={RUN: "failed"})),
    "not called in trouble": lambda s, w: (replace(s, first=first("failed")), replace(w, runs={RUN: "failed"})),
    "a run goes on": lambda s, w: (s, replace(w, runs={RUN: "success", OTHER: "running"})),
    "the environment has no row": lambda s, w: (replace(s, first="<main></main>"), w),
    "no line of audit says so": lambda s, w: (s, replace(w, audit=(line(OutcomeStatus.UNKNOWN),))),
    "is called refused, and was done": lambda s, w: (replace(s, plan={RUN: plan("refused")}), w),
    "and there is an outcome": lambda s, w: (replace(s, plan={RUN: plan("run")}), w),
    "and a broker has done it": lambda s, w: (replace(s, plan={RUN: plan("run")}), replace(w, audit=())),
    "was done, and has no row": lambda s, w: (replace(s, plan={RUN: "<main></main>"}), w),
    "while a broker is away": lambda s, w: (s, replace(w, down=(AWAY,))),
    "and the run has changed something": lambda s, w: (replace(s, notes={RUN: "No changes."}), w),
    "and the run has changed nothing": lambda s, w: (s, replace(w, audit=())),
    "create new is applied": lambda s, w: (s, replace(w, audit=(line(run=OTHER),))),
    "it failed, and it ended well": lambda s, w: (replace(s, told=[told("failed", "The run failed.")]), w),
    "nothing was sent, and": lambda s, w: (replace(s, told=[told("failed", "The run failed; nothing was sent.")]), w),
    "failing is over": lambda s, w: (
        replace(s, told=[told("recovered", "Over: a run that failed. No changes.")]), replace(w, runs={RUN: "failed"}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("sentence", LIES)
def test_each_kind_of_false_statement_is_found(sentence: str) -> None:
    found = false_statements(*LIES[sentence](shown(), world()))
    assert [said for said in found if sentence in said]


SILENCES: dict[str, Lie] = {
    "it failed, and nobody was told": lambda s, w: (replace(s, told=[]), replace(w, runs={RUN: "failed"})),
    "it changed 1 topics, and nobody was told": lambda s, w: (replace(s, told=[]), w),
    "there is none, and it ended success": lambda s, w: (replace(s, notes={RUN: ""}), w),
    "the brokers did less": lambda s, w: (s, replace(w, effects=Counter())),
}


@pytest.mark.parametrize("sentence", SILENCES)
def test_each_silence_is_found(sentence: str) -> None:
    found = not_said(*SILENCES[sentence](shown(), world()))
    assert [said for said in found if sentence in said]


def test_a_receiver_that_knows_of_the_cause_need_not_hear_it_again() -> None:
    again = replace(world(), audit=(), runs={RUN: "failed", OTHER: "failed"})
    heard = replace(shown(), told=[told("failed", "The run failed.")])
    assert not_said(heard, again) == set()


def test_a_change_that_did_not_run_is_not_taken_for_an_earlier_one_of_its_topic() -> None:
    earlier = replace(line(), run=OTHER, digest="e" * 64)
    marked = replace(world(), audit=(earlier,), runs={OTHER: "success", RUN: "failed"})
    found = false_statements(replace(shown(), plan={RUN: plan("run")}), marked)
    assert [said for said in found if "still called run" in said] == []


def test_an_earlier_run_that_found_it_so_has_not_done_what_a_broker_did() -> None:
    earlier = replace(line(OutcomeStatus.ALREADY_SO), run=OTHER, digest="e" * 64)
    killed = replace(world(), audit=(earlier,), runs={OTHER: "success", RUN: "failed"})
    found = false_statements(replace(shown(), plan={RUN: plan("run")}), killed)
    assert [said for said in found if "and a broker has done it" in said]


def test_a_page_that_says_that_it_is_old_may_be_old() -> None:
    warning = "What follows is older than the changes of two"
    old = replace(shown(), topics=topics(("old", "healthy", 1), warning=warning))
    assert {said for said in false_statements(old, world()) if said.startswith("Topics")} == set()
    assert {said for said in not_settled(old, world()) if warning in said}


def test_a_page_that_was_read_before_a_broker_went_is_not_false() -> None:
    later = Down(broker=2, since=AT + timedelta(minutes=5), until=None)
    assert false_statements(shown(), replace(world(), down=(later,))) == set()

"""An answer is an approval only of the question that it was given to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes import builders
from topicops.edges.home.memories import HELD
from topicops.flow.runs.questions import (
    ANSWER,
    ASKED_SET,
    QUESTION,
    Answer,
    AskedSet,
    Question,
    asked_set,
    given_approval,
    write_answer,
    write_question,
)
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.plans.plan import Approval
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.runs.memories import HeldSet
from topicops.steps.planning.gate import gate

RUN_AFTER = datetime(2026, 11, 22, tzinfo=UTC)
PLAN = gate(builders.change_set([builders.delete_change("old")]), builders.environment())
OTHER_PLAN = gate(builders.change_set([builders.delete_change("older")]), builders.environment())


@pytest.fixture
def run(tmp_path: Path) -> EnvironmentRun:
    """A run whose question was asked and approved."""
    run = open_run(environment="local", topics=tmp_path, group="topic_approval_local", run_id="1", home=tmp_path)
    run.store.write_text("plan.json", plan_to_json(PLAN))
    digests = [gated.digest for gated in PLAN.changes]
    asked_set(run, run_after=RUN_AFTER, wanted=digests, held_set="", started_by="carol")
    question = write_question(run, PLAN, "Delete old?")
    write_answer(run, Answer(question=question.digest, option="Approve", user="ann", user_id="1", at=later()))
    return run


def later() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1)


def test_the_approval_is_that_of_the_record(run: EnvironmentRun) -> None:
    approval = given_approval(run, run_after=RUN_AFTER)
    assert isinstance(approval, Approval)
    assert (approval.way, approval.approver, approval.signature) == ("question", "ann", "ann (id 1)")
    assert approval.authors == {"carol"}


def edit_answer(run: EnvironmentRun, **fields: object) -> None:
    run.store.write_value(ANSWER, replace(run.store.read_value(ANSWER, Answer), **fields))


def ask_anew(run: EnvironmentRun) -> None:
    question = run.store.read_value(QUESTION, Question)
    run.store.write_value(QUESTION, replace(question, loaded_at=later() + timedelta(seconds=1)))


def edit_asked(run: EnvironmentRun) -> None:
    asked = run.store.read_value(ASKED_SET, AskedSet)
    run.store.write_value(ASKED_SET, replace(asked, digests=("0" * 64,)))


@pytest.mark.parametrize(
    ("meanwhile", "reason"),
    [
        pytest.param(lambda run: edit_answer(run, option="Reject"), "the answer is no approval", id="rejected"),
        pytest.param(lambda run: edit_answer(run, option=""), "the answer is no approval", id="no word"),
        pytest.param(lambda run: edit_answer(run, at=None), "there is no recorded answer", id="not answered"),
        pytest.param(lambda run: run.store.remove(ANSWER), "there is no recorded answer", id="not asked"),
        pytest.param(lambda run: run.store.remove(QUESTION), "there is no recorded answer", id="withdrawn"),
        pytest.param(lambda run: edit_answer(run, question="0" * 64), "to another question", id="another question"),
        pytest.param(ask_anew, "to another question", id="asked anew after the answer"),
        pytest.param(edit_asked, "not the one that was asked about", id="another set"),
        pytest.param(
            lambda run: run.store.write_text("plan.json", plan_to_json(OTHER_PLAN)),
            "not the one that was asked about",
            id="another plan",
        ),
    ],
)
def test_an_answer_to_anything_else_is_no_approval(
    run: EnvironmentRun, meanwhile: Callable[[EnvironmentRun], object], reason: str
) -> None:
    meanwhile(run)
    found = given_approval(run, run_after=RUN_AFTER)
    assert isinstance(found, str)
    assert reason in found


def test_the_answer_of_an_earlier_run_of_the_same_name_is_no_approval(run: EnvironmentRun) -> None:
    found = given_approval(run, run_after=RUN_AFTER + timedelta(hours=1))
    assert isinstance(found, str)
    assert "there is no recorded answer" in found


def test_the_first_try_fixes_the_set(run: EnvironmentRun) -> None:
    again = asked_set(run, run_after=RUN_AFTER, wanted=["1" * 64], held_set="", started_by="dave")
    assert again.digests == tuple(gated.digest for gated in PLAN.changes)
    assert again.authors == ("carol",)


def test_a_set_that_is_named_by_its_digest_is_asked_about_only_while_it_is_held(run: EnvironmentRun) -> None:
    held = HeldSet(addresses={"1" * 64: "delete topic.old"})
    HELD.of(run.home, run.environment).write(held)
    for name, digests in ((held.digest, held.digests), ("2" * 64, ())):
        run.store.remove("asked-set.json")
        assert asked_set(run, run_after=RUN_AFTER, wanted=(), held_set=name, started_by="dave").digests == digests

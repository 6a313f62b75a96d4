"""What an approval run asks, and what a person answered: records in the run's folder, where no XCom can forge them.

``asked-set.json`` holds the changes that the run is about. Its first ``load`` writes them; no later try changes them.
``question.json`` is written by each ``load``, ``answer.json`` when the question is asked and when it is answered. An
answer counts only for the question whose digest it names.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from topicops.flow.runs.held_changes import read_held
from topicops.flow.runs.run import Run, now
from topicops.model.canonical import sha256_of
from topicops.model.plans.approval import Approval
from topicops.model.plans.plan import Plan

ASKED_SET, QUESTION, ANSWER = "asked-set.json", "question.json", "answer.json"
QUESTION_TEXT = "question.md"
APPROVE = "Approve"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSet:
    """The changes that one run asks about."""

    digests: tuple[str, ...]
    run_after: datetime
    """Airflow's time of the run: a later run of the same id has another."""
    authors: tuple[str, ...] = ()
    """Users who started the run that found the changes, or this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What ``load`` found: the plan of the asked changes, as the question shows it."""

    digest: str
    """Of the changes, the plan's fingerprint and the text."""
    digests: tuple[str, ...]
    loaded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What Airflow's own record of the answer says."""

    question: str
    """Digest of the question that was asked."""
    option: str = ""
    """Empty: nobody has answered yet."""
    user: str | None = None
    user_id: str | None = None
    at: datetime | None = None


def asked_set(
    run: Run, *, run_after: datetime, wanted: Collection[str], held_set: str, started_by: str | None
) -> AskedSet:
    """The set that the first try fixed; on that try ``wanted``, or all that are held now when it is empty.

    Args:
        held_set: Digest that the set of all held changes must have; empty: any. If it has another, the set is empty.
    """
    if recorded := recorded_set(run, run_after=run_after):
        return recorded
    newest = read_held(run.home, run.environment)
    is_other = held_set not in ("", newest.digest)
    digests = () if is_other else tuple(sorted(wanted)) or newest.digests
    found_by = newest.author if newest.covers(digests) else None
    authors = tuple(sorted({name for name in (found_by, started_by) if name}))
    asked = AskedSet(digests=digests, run_after=run_after, authors=authors)
    run.store.write_value(ASKED_SET, asked)
    return asked


def recorded_set(run: Run, *, run_after: datetime) -> AskedSet | None:
    """The set that this run asks about; None before its first ``load``."""
    if not run.store.has(ASKED_SET):
        return None
    recorded = run.store.read_value(ASKED_SET, AskedSet)
    return recorded if recorded.run_after == run_after else None


def write_question(run: Run, plan: Plan, text: str) -> Question:
    """Record the question and its text, which ends with the question's digest."""
    digests = tuple(sorted(gated.digest for gated in plan.changes))
    digest = sha256_of({"changes": list(digests), "plan": plan.fingerprint, "text": text})
    run.store.write_text(QUESTION_TEXT, f"{text}\nQuestion {digest}\n")
    question = Question(digest=digest, digests=digests, loaded_at=now())
    run.store.write_value(QUESTION, question)
    return question


def withdraw_question(run: Run) -> None:
    """No answer counts until the question is written anew."""
    run.store.remove(QUESTION)


def read_question(run: Run) -> Question | None:
    return run.store.read_value(QUESTION, Question) if run.store.has(QUESTION) else None


def write_answer(run: Run, answer: Answer) -> None:
    run.store.write_value(ANSWER, answer)


def read_answer(run: Run) -> Answer | None:
    """The answer, or the question that waits for one; None: nothing was asked."""
    return run.store.read_value(ANSWER, Answer) if run.store.has(ANSWER) else None


def given_approval(run: Run, *, run_after: datetime) -> Approval | str:
    """The approval that a person gave to this run's question, or why there is none."""
    asked, question, answer = recorded_set(run, run_after=run_after), read_question(run), read_answer(run)
    if asked is None or question is None or answer is None or answer.at is None:
        return "there is no recorded answer to the question of this run"
    if answer.option != APPROVE:
        return "the answer is no approval"
    if answer.question != question.digest or question.loaded_at > answer.at:
        return "the question was made anew after its answer: the answer is to another question"
    planned = sorted(gated.digest for gated in run.read_plan().changes)
    if not planned == list(question.digests) == list(asked.digests):
        return "the plan is not the one that was asked about"
    return Approval(
        digests=frozenset(asked.digests),
        way="question",
        approver=answer.user,
        signature=f"{answer.user or 'unknown'} (id {answer.user_id})",
        given_at=answer.at,
        authors=frozenset(asked.authors),
    )

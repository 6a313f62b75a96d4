"""What an approval run asks, and what a person answered: records in the run's folder, where no XCom can forge them.

``asked-set.json`` holds the changes that the run is about. Its first ``load`` writes them; no later try changes them.
``question.json`` is written by each ``load``, ``answer.json`` when the question is asked and when it is answered. An
answer counts only for the question whose digest it names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from topicops.flow.runs.memory import read_held
from topicops.flow.runs.run import EnvironmentRun, Run
from topicops.model.json_types import sha256_of
from topicops.model.plans.plan import Approval, Plan
from topicops.steps.planning.approvals import fields_of, marked, title_of

ASKED_SET, QUESTION, ANSWER = "asked-set.json", "question.json", "answer.json"
QUESTION_TEXT = "question.md"
APPROVE, REJECT = "Approve", "Reject"
LONGEST_COMMENT = 1000
"""Most characters of a comment; the rest is cut off."""


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
    """Digest of the changes, the plan's fingerprint, the text and the form."""
    digests: tuple[str, ...]
    loaded_at: datetime
    titles: Mapping[str, str] = field(default_factory=dict)
    """``delete legacy.orders-v1`` by digest."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The form, without the comment: what each field holds at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What Airflow's own record of the answer says."""

    question: str
    """Digest of the question that was asked."""
    option: str = ""
    """Option that was chosen; empty means that there is no answer yet."""
    user: str | None = None
    user_id: str | None = None
    at: datetime | None = None
    comment: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    """Choices of the person, by field of the form."""
    withdrawn: str = ""
    """Reason why the question was withdrawn; empty while it still counts."""

    @property
    def is_approval(self) -> bool:
        """Whether the recorded word is Approve; no other word is one."""
        return self.option == APPROVE

    @property
    def signature(self) -> str:
        """As the audit log names the person: ``admin (id 1)``."""
        return f"{self.user or 'unknown'} (id {self.user_id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What an answer says about each change of its question."""

    approved: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()
    objection: str = ""
    """Reason why the answer decides nothing."""


def asked_set(
    run: EnvironmentRun, *, run_after: datetime, wanted: Collection[str], held_set: str, started_by: str | None
) -> AskedSet:
    """Return the set that the first try fixed; on that try ``wanted``, or all that are held now when it is empty.

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
    """Return the set that this run asks about; None before its first ``load``."""
    recorded = run.store.read_if_there(ASKED_SET, AskedSet)
    return recorded if recorded and recorded.run_after == run_after else None


def write_question(run: Run, plan: Plan, text: str, *, rejected_before: Collection[str] = ()) -> Question:
    """Record the question and its text, which ends with its digest; ``rejected_before`` is marked from the start."""
    gravest_first = sorted(plan.changes, key=lambda gated: -gated.change.risk.rank)
    titles = {gated.digest: title_of(gated.change) for gated in gravest_first}
    digests, fields = tuple(sorted(titles)), fields_of(titles, rejected_before)
    digest = sha256_of({"changes": list(digests), "plan": plan.fingerprint, "text": text, "fields": fields})
    run.store.write_text(QUESTION_TEXT, f"{text}\nQuestion {digest}\n")
    question = Question(digest=digest, digests=digests, loaded_at=run.clock.utc(), titles=titles, fields=fields)
    run.store.write_value(QUESTION, question)
    return question


def withdraw_question(run: Run) -> None:
    """Withdraw the question: no answer counts until it is written anew."""
    run.store.remove(QUESTION)


def read_question(run: Run) -> Question | None:
    return run.store.read_if_there(QUESTION, Question)


def write_answer(run: Run, answer: Answer) -> None:
    run.store.write_value(ANSWER, answer)


def read_answer(run: Run) -> Answer | None:
    """Return the answer, or the question that waits for one; None means that nothing was asked."""
    return run.store.read_if_there(ANSWER, Answer)


def decision_of(question: Question, answer: Answer) -> Decision:
    """Return what the answer says about each change. Whether it may be used, ``given_approval`` says."""
    if answer.option == REJECT:
        return Decision(rejected=frozenset(question.digests))
    rejected = (
        marked(question.titles, question.fields, answer.choices) if answer.is_approval else "the answer is no Approve"
    )
    if isinstance(rejected, str):
        return Decision(objection=rejected)
    return Decision(approved=frozenset(question.digests) - rejected, rejected=rejected)


def left_out(run: Run) -> frozenset[str]:
    """Return the changes that an approval of this run's question left out."""
    question, answer = read_question(run), read_answer(run)
    if question is None or answer is None or answer.option == REJECT:
        return frozenset()
    return decision_of(question, answer).rejected


def given_approval(run: Run, *, run_after: datetime) -> Approval | str:
    """Return the approval that a person gave to this run's question, or why there is none."""
    asked, question, answer = recorded_set(run, run_after=run_after), read_question(run), read_answer(run)
    if asked is None or question is None or answer is None or answer.at is None:
        return "there is no recorded answer to the question of this run"
    if not answer.is_approval:
        return "the answer is no approval"
    if answer.question != question.digest or question.loaded_at > answer.at:
        return "the question was made anew after its answer: the answer is to another question"
    planned = sorted(gated.digest for gated in run.read_plan().changes)
    if not planned == list(question.digests) == list(asked.digests):
        return "the plan is not the one that was asked about"
    decision = decision_of(question, answer)
    if not decision.approved:
        return decision.objection or "each change was marked as rejected"
    return Approval(
        digests=decision.approved,
        way="question",
        approver=answer.user,
        signature=answer.signature,
        given_at=answer.at,
        authors=frozenset(asked.authors),
        comment=answer.comment,
    )

"""Read what the pages show of one run from its artifacts: one DAG id and one run id, and no other.

A page may be opened before, during or long after its run, so it reports each artifact that is missing or damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from topicops.flow.runs.kept import load_facts
from topicops.flow.runs.memory import question_name, read_held, read_rejections
from topicops.flow.runs.questions import ANSWER, ASKED_SET, QUESTION, AskedSet, decision_of, read_answer, read_question
from topicops.flow.runs.run import (
    COMMIT_ADDRESS,
    DIAGNOSTICS_FILE,
    FILES_COMMIT,
    PLAN_FILE,
    Place,
    Run,
    open_run,
    outcomes_file,
)
from topicops.model.errors import ArtifactError, FormatVersionError
from topicops.model.plans.changes import ACTIONS, GateWord
from topicops.model.plans.plan import Plan
from topicops.model.runs.facts import Facts, FactsWhen, facts_file
from topicops.model.runs.memories import HeldSet, Rejection
from topicops.model.runs.results import QUIET_FILE, Outcome, Quiet
from topicops.model.specs.diagnostics import Diagnostic
from topicops.on_airflow.names import RunOf
from topicops.steps.reporting.run_report import carried_out

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    by: str
    at: datetime
    comment: str = ""
    approved: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()
    objection: str = ""
    """Reason why the answer decided nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The approval that a plan's held changes need."""

    dag_id: str
    run_id: str | None
    """Newest run that asked; None means that no run did."""
    replaced_by: str = ""
    """The run whose held set replaced it; empty while the newest set still contains all of it."""
    digests: tuple[str, ...] = ()
    """The changes that it is about."""
    answer: Answered | None = None
    """Answer; None means that there is none, or that its record is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanModel:
    run: RunOf
    plan: Plan | None = None
    question: Question | None = None
    """Question; None means that no held change could run with an approval."""
    facts: Facts | None = None
    """Facts of the run's first snapshot."""
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """Outcomes by digest; only of changes that a task has processed, of this run or of the one that asked about them.
    """
    rejections: Mapping[str, Rejection] = field(default_factory=dict)
    """Rejected held changes, by digest."""
    diagnostics: tuple[Diagnostic, ...] = ()
    commit: str = ""
    """Commit of the files, for a run without a plan; empty means not known."""
    commit_address: str = ""
    """Address of the commit at the forge; empty means not known."""
    quiet: str = ""
    """Reason why the run ended after its snapshot, if it did; one sentence."""
    problems: tuple[str, ...] = ()


def read_plan(home: Place, run: RunOf) -> PlanModel:
    """Return the plan with the gate's words, the outcome of each change, and the state of the approval."""
    if run.environment is None:
        return PlanModel(run=run)
    reading = RunReading(opened(home, run.dag_id, run.run_id))
    plan = reading.value(PLAN_FILE, Run.read_plan)
    model = PlanModel(run=run, commit_address=reading.commit_address())
    if plan is None:
        model = replace(
            model, quiet=reading.quiet(), diagnostics=reading.diagnostics(), commit=reading.text(FILES_COMMIT)
        )
        return replace(model, problems=tuple(reading.problems))
    question, found = _question(home, run, plan), reading.outcomes()
    if question and question.run_id:
        asking = RunReading(opened(home, question.dag_id, question.run_id))
        question = replace(question, answer=asking.answer())
        found = found if run.is_approval else (*found, *asking.outcomes())
    shown = carried_out(plan, found)
    if question and not any(gated.approvable for gated in shown.changes):
        question = replace(question, replaced_by="")  # it was carried out before the next set came
    return replace(
        model,
        plan=shown,
        question=question,
        facts=reading.facts("before"),
        outcomes={outcome.digest: outcome for outcome in found},
        rejections=_rejections(home, run, plan),
        problems=tuple(reading.problems),
    )


def without_persons(model: PlanModel) -> PlanModel:
    """Return the same plan for a reader who may not see the answers: what was decided, but not by whom or why."""
    question, nobody = model.question, "a person"
    if question and question.answer:
        question = replace(question, answer=replace(question.answer, by=nobody, comment=""))
    rejections = {digest: replace(found, by=nobody, comment="") for digest, found in model.rejections.items()}
    return replace(model, question=question, rejections=rejections)


def opened(home: Place, dag_id: str, run_id: str) -> Run:
    """Return a run's folder; nothing is created."""
    return open_run(environment="", topics=Path(), group=dag_id, run_id=run_id, home=home)


class RunReading:
    """One run's folder, and what of it could not be read."""

    def __init__(self, run: Run) -> None:
        self.problems: list[str] = []
        self._run = run

    def value(self, name: str, read: Callable[[Run], T]) -> T | None:
        if not self._run.store.has(name):
            return None
        try:
            return read(self._run)
        except (ArtifactError, FormatVersionError) as error:
            # A page must not show where the folder is on the server.
            problem = str(error).removeprefix(f"{self._run.store.folder}/").removeprefix(f"{name}: ")
            self.problems.append(f"{name}: {problem}")
            return None

    def _value_of(self, name: str, kind: type[T]) -> T | None:
        return self.value(name, lambda run: run.store.read_value(name, kind))

    def facts(self, when: FactsWhen) -> Facts | None:
        return self.value(facts_file(when), lambda run: load_facts(run, when))

    def quiet(self) -> str:
        found = self._value_of(QUIET_FILE, Quiet)
        return found.sentence if found else ""

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        found = self._value_of(DIAGNOSTICS_FILE, tuple[Diagnostic, ...]) or ()
        # A page must not show where a folder is on the server.
        names = [Path(entry.file).name if Path(entry.file).is_absolute() else entry.file for entry in found]
        return tuple(replace(entry, file=name) for entry, name in zip(found, names, strict=True))

    def answer(self) -> Answered | None:
        question, answer = self.value(QUESTION, read_question), self.value(ANSWER, read_answer)
        if question is None or answer is None or answer.at is None or answer.question != question.digest:
            return None
        decision = decision_of(question, answer)
        return Answered(
            by=answer.signature,
            at=answer.at,
            comment=answer.comment,
            approved=decision.approved,
            rejected=decision.rejected,
            objection=decision.objection,
        )

    def text(self, name: str) -> str:
        return self.value(name, lambda run: run.store.read_text(name)) or ""

    def commit_address(self) -> str:
        found = self.text(COMMIT_ADDRESS)
        return found if found.startswith(("https://", "http://")) else ""

    def outcomes(self) -> tuple[Outcome, ...]:
        found = (self._value_of(outcomes_file(action), tuple[Outcome, ...]) for action in ACTIONS)
        return tuple(outcome for outcomes in found for outcome in outcomes or ())


def _rejections(home: Place, run: RunOf, plan: Plan) -> Mapping[str, Rejection]:
    held = {gated.digest for gated in plan.with_gate(GateWord.HELD)}
    try:
        found = read_rejections(home, str(run.environment)) if held else {}
    except ArtifactError:  # a damaged file must not make the page fail
        found = {}
    return {digest: rejection for digest, rejection in found.items() if digest in held}


def _question(home: Place, run: RunOf, plan: Plan) -> Question | None:
    held = HeldSet(addresses={g.digest: g.change.address for g in plan.with_gate(GateWord.HELD) if g.approvable})
    if not held.addresses:
        return None
    asked = run.run_id if run.is_approval else _newest_question(home, run.approval_dag, held)
    try:
        newest = read_held(home, str(run.environment))
    except ArtifactError:  # a damaged file must not make the page fail
        newest = HeldSet()
    replaced_by = "" if newest.covers(held.digests) else newest.found_by
    return Question(dag_id=run.approval_dag, run_id=asked, replaced_by=replaced_by, digests=held.digests)


def _newest_question(home: Place, approval_dag: str, held: HeldSet) -> str | None:
    """Return the newest approval run of that set, by its own record; it has a folder as soon as its first task ran."""
    name = question_name(held.digest, len(held.digests))
    folders = opened(home, approval_dag, name).store.folder.parent.glob(f"{name}.*")
    numbers = sorted((int(f.suffix[1:]) for f in folders if f.suffix[1:].isdecimal()), reverse=True)
    runs = (f"{name}.{number}" for number in numbers)
    return next((run_id for run_id in runs if _asks_about(opened(home, approval_dag, run_id), held)), None)


def _asks_about(run: Run, held: HeldSet) -> bool:
    if not run.store.has(ASKED_SET):
        return True  # its first task has only begun
    return set(run.store.read_value(ASKED_SET, AskedSet).digests) == set(held.digests)

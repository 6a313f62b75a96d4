"""Ask a person about held changes, and send exactly what was approved.

A run asks about one set, which its first ``load`` fixes. Question and answer are records of ``flow.runs.questions``;
XCom carries them only for people to read. When a change is sent, four things must be true: the answer to this very
question is Approve, the policy counts it, the set is still part of the newest held set, and the files and the cluster
of now ask for the change. Each task checks the first and the third here, ``flow.apply`` the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Context
from airflow.sdk.configuration import conf
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, TaskAwaitingInput
from airflow.sdk.execution_time.hitl import HITLUser
from airflow.sdk.timezone import utcnow

from topicops.model.errors import NotHeldError
from topicops.model.plans.changes import ACTIONS, Action
from topicops.model.printable import plural, printable
from topicops.model.runs.results import IN_PLACE, Outcome, OutcomeStatus
from topicops.on_airflow import tasks
from topicops.on_airflow.branches import SKIP, kinds_not_in, kinds_of
from topicops.on_airflow.params import refuse_unknown_params, triggered_by
from topicops.on_airflow.tasks import RefusedError, Site, XComValue, step
from topicops.on_airflow.waiting import Patience, remind, replacement, withdraw

if TYPE_CHECKING:
    from airflow.sdk.types import RuntimeTaskInstanceProtocol

    from topicops.flow.runs.run import EnvironmentRun, Run
    from topicops.model.plans.plan import Approval
    from topicops.on_airflow.tellers import AnswerKind


log = logging.getLogger(__name__)

HIGHEST_ASK = 1000
HEADLINES = {
    "approved": "Approved, and nothing was sent",
    "rejected": "Rejected: nothing was sent",
    "withdrawn": "Withdrawn, and nothing was sent",
    "none": "Not answered: nothing was sent",
}
"""Of a run that sent nothing, by its answer."""
NOBODY_IS_ASKED = {
    False: "nothing is held that an approval could let run",
    True: "all that is held was rejected before; it rests until it changes",
}
"""By whether something held rests."""
Shown = tuple[str, str | None, Mapping[str, Any]]
"""Subject, text and form of a question."""


class AskForApproval(TriggerDagRunOperator):
    """Starts the approval DAG for this run's held set, unless the same set has been asked about already.

    The run id is ``3-changes-73c682d1aa21.<n>``, with the digest of the set in it. The next n is used when the last run
    of that set failed or timed out, or was answered and the same changes are needed again. The gate keeps back a set of
    which every change was rejected.
    """

    def execute(self, context: Context) -> None:
        from topicops.flow.runs.memory import question_name

        ti = context["ti"]
        found = ti.xcom_pull(task_ids="gate") or {}
        if not found.get("question"):
            skip(NOBODY_IS_ASKED[bool(found.get("rests"))])
        name = question_name(found["question"], found["asked"])
        self.trigger_run_id = next_run_id(ti, self.trigger_dag_id, name)
        self.conf = {"digests": found["digests"], "held_set": found["held_set"]}
        self.note = f"{found['asked']} held change(s), found by {ti.dag_id}, run {ti.run_id}"
        super().execute(context)


def next_run_id(ti: RuntimeTaskInstanceProtocol, dag_id: str, name: str) -> str:
    """The run that is to ask about a set. Raises ``AirflowSkipException`` while another run asks about it.

    Args:
        name: Of the set, as ``question_name`` gives it.
    """
    for n in range(1, HIGHEST_ASK):
        run_id = f"{name}.{n}"
        if not ti.get_dr_count(dag_id=dag_id, run_ids=[run_id]):
            return run_id
        if ti.get_dagrun_state(dag_id=dag_id, run_id=run_id) in ("queued", "running"):
            skip(f"this set is being asked about: {dag_id}, run {run_id}")
    raise AirflowFailException(f"one set of held changes was asked about {HIGHEST_ASK} times; look at {dag_id}")


def load(site: Site, context: Context) -> XComValue:
    """A new plan with only the changes in question, and the question as Markdown.

    Skips this task, and so all others but the report, when a change is not needed any more or cannot be approved.
    """
    from topicops.flow.runs import questions
    from topicops.flow.runs.memory import note_begin, read_rejections
    from topicops.on_airflow.question import question_markdown

    with step(site, context) as (flow, run):
        refuse_unknown_params(context)
        note_begin(run)
        questions.withdraw_question(run)
        asked = questions.asked_set(
            run,
            run_after=context["dag_run"].run_after,
            wanted=context["params"]["digests"] or (),
            held_set=context["params"]["held_set"] or "",
            started_by=triggered_by(context),
        )
        try:
            summary = flow.plan_held(run, asked.digests).to_xcom()
        except NotHeldError as error:
            skip(f"{error}: nobody is asked")
        plan = run.read_plan()
        tasks.log_changes(plan)
        before = read_rejections(run.home, run.environment)
        page, commit_page = tasks.plan_address(context["ti"]), tasks.commit_address(context["ti"], site.topics)
        tasks.keep_commit_address(run, commit_page)
        asked_text = question_markdown(plan, page=page, commit_page=commit_page, rejections=before)
        question = questions.write_question(run, plan, asked_text, rejected_before=before.keys())
        text = str(run.store.path(questions.QUESTION_TEXT))
        return {
            **summary,
            "question": text,
            "question_digest": question.digest,
            "digests": tasks.listed(question.digests),
            SKIP: kinds_not_in(plan),
        }


class AskPerson(ApprovalOperator):
    """Shows the question that ``load`` wrote, and records the answer that Airflow has of it.

    Airflow keeps the text of a task's first question when the task is cleared. The person would read an old text then,
    so the task fails unless Airflow shows exactly this question.

    While nobody answers, it wakes up now and then: a question whose set was replaced is withdrawn, and the task is
    skipped; of one that waits for long the notifiers are told again.
    """

    def __init__(self, *, site: Site, patience: Patience, **kwargs: Any) -> None:
        super().__init__(response_timeout=patience.answer_within, **kwargs)
        self.site, self.patience = site, patience

    def execute(self, context: Context) -> None:
        from topicops.flow.runs import questions
        from topicops.flow.runs.memory import read_rejections
        from topicops.on_airflow.question import form_params

        with step(self.site, context) as (_, run):
            question = questions.read_question(run)
            if question is None:
                raise AirflowFailException("load has left no question: clear load, or start a new run")
            self.subject = f"{self.subject} {len(question.digests)} held change(s), question {question.digest[:12]}"
            self.body = run.store.read_text(questions.QUESTION_TEXT)
            self.assigned_users = assigned_users(run)
            before = read_rejections(run.home, run.environment)
            self.params = ParamsDict(form_params(run.read_plan(), question.fields, before))
            questions.write_answer(run, questions.Answer(question=question.digest))
        shown = self._shown(context)
        if shown != (self.subject, self.body, self.serialized_params):
            raise AirflowFailException(
                f"Airflow still shows an earlier question of this run ({shown[0]}); a run asks one question: start a "
                f"new run of {context['ti'].dag_id}"
            )
        tell_of_question(run, self.site, context, link=self._address(context))
        try:
            super().execute(context)
        except TaskAwaitingInput:
            self._wait(utcnow())

    def execute_complete(
        self, context: Context, event: dict[str, Any], asked_at: str = "", reminded: bool = False
    ) -> Any:
        """Take the answer, or look at the question again.

        Args:
            asked_at: In ISO form; empty: an earlier release of topicops has asked the question.
            reminded: Whether the notifiers were told again. Their own memory may be on a disk that is full.
        """
        asked = datetime.fromisoformat(asked_at) if asked_at else None
        if event.get("error_type") == "timeout" and asked and not self.patience.is_over(asked, utcnow()):
            reminds = not reminded and self.patience.reminds(asked, utcnow())
            if replaced := self._look(context, asked, reminds=reminds):
                skip(f"the question is withdrawn: {replaced}; nothing is sent")
            self._wait(asked, reminded=reminded or reminds)
        if "error" not in event:
            with step(self.site, context) as (_, run):
                record_answer(run, event)
                tell_of_answer(run, self.site, context)
        return super().execute_complete(context, event)

    def _wait(self, asked_at: datetime, *, reminded: bool = False) -> NoReturn:
        raise TaskAwaitingInput(
            method_name="execute_complete",
            kwargs={"asked_at": asked_at.isoformat(), "reminded": reminded},
            timeout=self.patience.next_look(asked_at, utcnow()),
        )

    def _look(self, context: Context, asked_at: datetime, *, reminds: bool) -> str:
        """What replaced the set of the question, which is withdrawn then; empty: the question waits on."""
        from topicops.flow.runs import questions

        try:
            with step(self.site, context) as (_, run):
                question = questions.read_question(run)
                if question is None:
                    return ""
                if replaced := replacement(run, question.digests):
                    withdraw(run, self.site, context, replaced)
                elif reminds:
                    remind(run, question, self.site, context, asked_at=asked_at, link=self._address(context))
                return replaced
        except AirflowException as error:  # an answer is judged by the newest held set in any case
            log.warning("whether the question is out of date cannot be said, so it waits on: %s", error)
            return ""

    def validate_params_input(self, params_input: Mapping[str, Any]) -> None:
        """Nothing: ``given_approval`` judges the recorded choices, and what it does not understand approves nothing."""

    def _address(self, context: Context) -> str:
        """Of the question; empty where Airflow does not know its own address."""
        is_known = bool(conf.get("api", "base_url", fallback=""))
        return self.generate_link_to_ui_from_context(context=context) if is_known else ""

    def _shown(self, context: Context) -> Shown:
        """Subject, text and form of the question as Airflow shows them, after it was given ours."""
        from airflow.sdk.api.datamodels._generated import HITLUser as AssignedUser
        from airflow.sdk.execution_time.comms import CreateHITLDetailPayload, HITLDetailRequestResult
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

        ours = CreateHITLDetailPayload(
            ti_id=context["ti"].id,
            options=self.options,
            subject=self.subject,
            body=self.body,
            params=self.serialized_params,
            assigned_users=[AssignedUser(**user) for user in self.assigned_users or ()],
        )
        shown = SUPERVISOR_COMMS.send(ours)
        if not isinstance(shown, HITLDetailRequestResult):
            raise AirflowFailException(f"Airflow does not take the question: {shown}")
        return shown.subject, shown.body, shown.params or {}


def assigned_users(run: EnvironmentRun) -> list[HITLUser] | None:
    """The policy's approvers for the simple auth manager, whose users have their names as ids.

    Other auth managers know users by ids that no file names: there every answer is taken, and judged when it is used.
    """
    from topicops.flow.runs.run import read_environment

    names = read_environment(run).spec.policy.approvers
    is_simple = conf.get("core", "auth_manager").endswith(".SimpleAuthManager")
    return [HITLUser(id=name, name=name) for name in names] if names and is_simple else None


def record_answer(run: EnvironmentRun, event: Mapping[str, Any]) -> None:
    """Keep what Airflow's record of the answer says, beside the question that was asked."""
    from topicops.flow.runs import questions
    from topicops.flow.runs.memory import note_answer
    from topicops.model.runs.memories import Rejection
    from topicops.steps.planning.approvals import COMMENT

    asked, question, user = questions.read_answer(run), questions.read_question(run), event["responded_by_user"] or {}
    if asked is None or question is None:
        raise AirflowFailException("the record of the question is gone from TOPICOPS_HOME: start a new run")
    filled = {name: "" if value is None else str(value) for name, value in (event.get("params_input") or {}).items()}
    answer = replace(
        asked,
        option=" and ".join(event["chosen_options"]),
        user=user.get("name"),
        user_id=user.get("id"),
        at=event["responded_at"],
        comment=printable(filled.pop(COMMENT, "").strip())[: questions.LONGEST_COMMENT],
        choices=filled,
    )
    questions.write_answer(run, answer)
    log.info("%s by %s%s", answer.option, answer.signature, f": {answer.comment}" if answer.comment else "")
    if answer.question == question.digest:
        decision = questions.decision_of(question, answer)
        rejection = Rejection(by=answer.signature, at=event["responded_at"], run=run.name, comment=answer.comment)
        note_answer(run.home, run.environment, rejection, rejected=decision.rejected, approved=decision.approved)


def tell_of_question(run: EnvironmentRun, site: Site, context: Context, *, link: str) -> None:
    """Tell the notifiers that a person is asked; ``link`` leads to the question."""
    from topicops.flow.runs.questions import read_question
    from topicops.on_airflow.question import listed_titles
    from topicops.on_airflow.tellers import TELLERS

    question, plan = read_question(run), run.read_plan()
    if question is not None:
        named = listed_titles(plan, question.digests)
        waits = "waits" if len(question.digests) == 1 else "wait"
        verdict = f"{plural(len(question.digests), 'change')} of {run.environment} {waits} for an approval: {named}"
        changes, notifiers = len(question.digests), site.options.notifiers
        for teller in TELLERS:
            teller.tell_of_answer(
                run, notifiers, context, kind="held", verdict=lambda: verdict, changes=changes, link=link
            )


def tell_of_answer(run: Run, site: Site, context: Context, *, unsent: str = "") -> None:
    """Tell the notifiers what was approved, and what was rejected.

    Args:
        unsent: Why nothing was sent; empty: it is not known yet, or something was.
    """
    from topicops.flow.runs.questions import decision_of, read_answer, read_question
    from topicops.on_airflow.question import listed_titles
    from topicops.on_airflow.tellers import TELLERS

    question, answer = read_question(run), read_answer(run)
    if question is None or answer is None:
        return
    decision, said = decision_of(question, answer), f": {answer.comment}" if answer.comment else ""
    kinds: Mapping[AnswerKind, Collection[str]] = {"approved": decision.approved, "rejected": decision.rejected}

    def verdict(kind: AnswerKind, digests: Collection[str]) -> str:
        why = (unsent or replacement(run, digests)) if kind == "approved" else ""
        nothing = f", and nothing was sent: {why}" if why else ""
        return f"{kind} by {answer.signature}{said}: {listed_titles(run.read_plan(), digests)}{nothing}"

    for kind, digests in kinds.items():
        for teller in TELLERS if digests else ():
            said_of_it = partial(verdict, kind, digests)
            teller.tell_of_answer(
                run, site.options.notifiers, context, kind=kind, verdict=said_of_it, changes=len(digests)
            )


def approved_change(action: Action) -> Callable[[Site, Context], XComValue]:
    """The task that sends one kind of the changes in question, if they were approved and nothing replaced them."""

    def change(site: Site, context: Context) -> XComValue:
        from topicops.flow.runs.outcomes import read_outcomes
        from topicops.flow.single_steps import apply_summary

        with step(site, context) as (_, run):
            given = approval_of(run, context)
            if isinstance(given, str):
                skip(f"{given}: nothing is sent")
            if replaced := replacement(run, given.digests):
                note_unsent(run, action, given.digests, OutcomeStatus.REFUSED, replaced)
                skip(f"{replaced}: nothing is sent")
        try:
            return tasks.send(site, context, action, approvals=(given,))
        except RefusedError:
            with step(site, context) as (_, run):
                outcomes = read_outcomes(run, (action,))
            missed = [outcome for outcome in outcomes if outcome.status not in IN_PLACE]
            if not (why := unasked(missed)):
                raise
            if len(missed) == len(outcomes):
                skip(f"{why}: nothing is sent")
            log.info("%s", why)
            return apply_summary(run, outcomes).to_xcom()

    return change


def unasked(outcomes: Sequence[Outcome]) -> str:
    """Why none of these changes was sent, if each is one that no file asks for any more; empty: for another reason."""
    from topicops.steps.reporting.plan_wording import some

    if not outcomes or not all(outcome.is_unasked for outcome in outcomes):
        return ""
    named = some(f"{outcome.action} {outcome.topic}, because {outcome.message}" for outcome in outcomes)
    return f"the files do not ask for it any more: {named}"


def note_unsent(run: Run, action: Action, approved: Collection[str], status: OutcomeStatus, reason: str) -> None:
    """An outcome for each approved change that is not sent. What an earlier try sent keeps its own."""
    from topicops.flow.runs.outcomes import write_outcomes
    from topicops.flow.runs.run import outcomes_file

    if run.store.has(outcomes_file(action)):
        return
    changes = [g for g in run.read_plan().changes if g.change.action == action and g.digest in approved]
    if changes:
        write_outcomes(run, (action,), [Outcome.of(gated, status, reason) for gated in changes])


def skip(reason: str) -> NoReturn:
    """Skip the task. Airflow shows the reason of a skip nowhere, so the log has it."""
    log.info("%s", reason)
    raise AirflowSkipException(reason)


def report(site: Site, context: Context) -> XComValue:
    """Log the answer and report what was sent, or why nothing was.

    Is skipped when an approval sent nothing because its set was replaced, or because the files do not ask for it any
    more: that is no failure, and it must not look like success.
    """
    from topicops.flow.reporting import run_report
    from topicops.flow.runs.outcomes import read_outcomes
    from topicops.on_airflow.plugged import after_reading
    from topicops.plugged import after_task
    from topicops.steps.reporting.run_result import run_result

    states = tasks.task_states(context)
    was_sent = any(states.get(action) == "success" for action in ACTIONS)
    has_ended = not was_sent and not tasks.failed_tasks(context)
    with step(site, context) as (flow, run):
        given, answer = approval_of(run, context), answer_of(run, context)
        replaced = replacement(run, given.digests) if has_ended and not isinstance(given, str) else ""
        facts: XComValue = {"answer": answer, "replaced": replaced, **note_decision(run, given)}
        outcomes = read_outcomes(run)
        unsent = replaced or (unasked(outcomes) if has_ended and answer == "approved" else "")
        why = given if isinstance(given, str) else unsent
        headline = f"{HEADLINES[answer]}: {why}." if unsent or answer == "withdrawn" else f"{HEADLINES[answer]}."
        log.info("%s%s", f"{headline} " if has_ended else "", f"answer: {answer}{f'; {why}' if why else ''}")
        remarks = [why] if why else []
        if unsent:
            after_task(run)
            flow.report(run, failed_tasks=())
            tell_of_answer(run, site, context, unsent=unsent)
        if has_ended:
            after_reading(run)
            tasks.hand_over(run_result(run_report(run), remarks=remarks, headline=headline), context)
    if unsent:
        context["ti"].xcom_push(key="return_value", value=facts)  # Airflow keeps what a task returns that ends well
        skip(headline)
    if has_ended:
        return facts
    reported = tasks.report(site, context, remarks=remarks)
    kinds = kinds_of(run.read_plan()) if was_sent else frozenset()
    skipped = [kind for kind in kinds if states.get(kind) == "skipped"]
    if late := [kind for kind in skipped if not unasked([o for o in outcomes if o.action == kind])]:
        raise AirflowFailException(f"the set was replaced while it was being sent; not sent: {', '.join(late)}")
    return {**reported, **facts}


def note_decision(run: Run, given: Approval | str) -> XComValue:
    """Leave in the report who said what, and an outcome for each approved change that no task came to."""
    from topicops.flow.runs.questions import decision_of, read_answer, read_question
    from topicops.flow.runs.run import note
    from topicops.on_airflow.question import listed_titles

    answer, question = read_answer(run), read_question(run)
    if answer is None or question is None or answer.at is None:
        return {"comment": "", "rejected": 0}
    decision = decision_of(question, answer)
    if not isinstance(given, str):
        for action in ACTIONS:
            note_unsent(run, action, given.digests, OutcomeStatus.NOT_SENT, "the run ended before its turn; plan again")
    said = f": {answer.comment}" if answer.comment else ""
    plan = run.read_plan()
    sentences = [
        f"{verb} by {answer.signature}{said}: {listed_titles(plan, digests)}"
        for verb, digests in (("approved", decision.approved), ("rejected", decision.rejected))
        if digests
    ]
    note(run, sentences)
    return {"comment": answer.comment, "rejected": len(decision.rejected)}


def approval_of(run: Run, context: Context) -> Approval | str:
    """The approval that this run's question was given, or why there is none.

    A run that was cleared may skip the question; then the record of its earlier try is ignored.
    """
    from topicops.flow.runs.questions import given_approval

    if tasks.task_states(context).get("approve") != "success":
        return withdrawn_because(run, context) or "the question has no answer"
    return given_approval(run, run_after=context["dag_run"].run_after)


def withdrawn_because(run: Run, context: Context) -> str:
    """Why the question of this run was withdrawn; empty: it was not."""
    from topicops.flow.runs.questions import read_answer, read_question

    answer, question = read_answer(run), read_question(run)
    is_skipped = tasks.task_states(context).get("approve") == "skipped"
    is_of_question = answer is not None and question is not None and answer.question == question.digest
    return answer.withdrawn if answer is not None and is_skipped and is_of_question else ""


def answer_of(run: Run, context: Context) -> str:
    """``approved``, ``rejected``, ``withdrawn`` or ``none``."""
    from topicops.flow.runs.questions import decision_of, read_answer, read_question

    if not isinstance(approval_of(run, context), str):
        return "approved"
    if withdrawn_because(run, context):
        return "withdrawn"
    answer, question = read_answer(run), read_question(run)
    if answer is None or question is None or tasks.task_states(context).get("approve") != "success":
        return "none"
    decision = decision_of(question, answer)
    return "rejected" if decision.rejected and not decision.approved else "none"

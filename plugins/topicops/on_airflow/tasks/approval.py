"""Ask a person about held changes, and send exactly what was approved.

A run asks about one set, which its first ``load`` fixes. Question and answer are records of ``flow.runs.questions``;
XCom carries them only for people to read. When a change is sent, four things must be true: the answer to exactly this
question is Approve, the policy counts it, the set is still part of the newest held set, and the present files and
cluster need the change. Each task checks the first and the third here, ``flow.apply`` the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal

from airflow.sdk import Context, conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from topicops.flow.reporting import run_report
from topicops.flow.runs import questions
from topicops.flow.runs.memory import note_answer, note_begin, question_name, read_held, read_rejections
from topicops.flow.runs.outcomes import read_outcomes, write_outcomes
from topicops.flow.runs.questions import Decision
from topicops.flow.runs.run import EnvironmentRun, note, outcomes_file, read_environment
from topicops.flow.single_steps import counts_of
from topicops.model.errors import NotHeldError
from topicops.model.plans.changes import ACTIONS, Action
from topicops.model.plans.plan import Approval, Plan
from topicops.model.printable import plural, printable
from topicops.model.runs.memories import Rejection
from topicops.model.runs.results import NO_FAILURE, REPLACED, Outcome, OutcomeStatus
from topicops.on_airflow import airflow_inside
from topicops.on_airflow.names import PLAN_ROUTE, tab_address
from topicops.on_airflow.plugged import after_reading
from topicops.on_airflow.plugged_at_start import TELLERS, ToldKind
from topicops.on_airflow.site import SKIP, Site
from topicops.on_airflow.tasks import changes
from topicops.on_airflow.tasks.changes import RefusedError, send
from topicops.on_airflow.tasks.opening import (
    XComValue,
    failed_tasks,
    keep_commit_address,
    opened,
    refuse_unknown_params,
    skip,
    task_states,
    triggered_by,
)
from topicops.on_airflow.tasks.planning import hand_over, kinds_of, listed, log_changes
from topicops.on_airflow.tasks.question import form_params, listed_titles, question_markdown
from topicops.plugged import after_task
from topicops.steps.planning.approvals import COMMENT
from topicops.steps.reporting.plan_wording import some
from topicops.steps.reporting.run_result import run_result

log = logging.getLogger(__name__)

HIGHEST_ASK = 1000
Word = Literal["approved", "rejected", "withdrawn", "none"]
HEADLINES: Mapping[Word, str] = {
    "approved": "Approved, and nothing was sent",
    "rejected": "Rejected: nothing was sent",
    "withdrawn": "Withdrawn, and nothing was sent",
    "none": "Not answered: nothing was sent",
}
"""Headlines of a run that sent nothing, by its answer."""


# ---- the task ``ask`` of the pipeline ----


def to_ask(context: Context, dag_id: str) -> tuple[str, XComValue, str]:
    """Give run id, params and note of the run that asks about the held set; skips the task where nobody is asked."""
    ti = context["ti"]
    found = ti.xcom_pull(task_ids="gate") or {}
    if not found.get("question"):
        rest = "all that is held was rejected before; it rests until it changes"
        skip(rest if found.get("rests") else "nothing is held that an approval could let run")
    name = question_name(found["question"], found["asked"])
    for n in range(1, HIGHEST_ASK):
        run_id = f"{name}.{n}"
        if not ti.get_dr_count(dag_id=dag_id, run_ids=[run_id]):
            said = f"{plural(found['asked'], 'held change')}, found by {ti.dag_id}, run {ti.run_id}"
            return run_id, {"digests": found["digests"], "held_set": found["held_set"]}, said
        if ti.get_dagrun_state(dag_id=dag_id, run_id=run_id) in ("queued", "running"):
            skip(f"this set is being asked about: {dag_id}, run {run_id}")
    raise AirflowFailException(f"one set of held changes was asked about {HIGHEST_ASK} times; look at {dag_id}")


# ---- the question ----


def load(site: Site, context: Context) -> XComValue:
    """Plan the changes in question alone, and write the question.

    Skips this task, and so all others but the report, when a change is not needed any more or cannot be approved.
    """
    with opened(site, context) as (tools, run):
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
            summary = tools.flow.plan_held(run, asked.digests)
        except NotHeldError as error:
            skip(f"{error}: nobody is asked")
        plan, ti = run.read_plan(), context["ti"]
        log_changes(plan)
        before = read_rejections(run.home, run.environment)
        page, commit_page = tab_address(ti.dag_id, ti.run_id, PLAN_ROUTE), keep_commit_address(run, ti, site.topics)
        text = question_markdown(plan, page=page, commit_page=commit_page, rejections=before)
        question = questions.write_question(run, plan, text, rejected_before=before.keys())
        return {
            **summary,
            "question": str(run.store.path(questions.QUESTION_TEXT)),
            "question_digest": question.digest,
            "digests": listed(question.digests),
            SKIP: {action: f"nothing to {action}" for action in ACTIONS if action not in kinds_of(plan)},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A question as Airflow shows it."""

    subject: str
    body: str | None
    params: Mapping[str, Any]
    """Fields of the form."""


def begin_to_ask(site: Site, context: Context) -> tuple[Shown, list[airflow_inside.HITLUser] | None]:
    """Record that the question of ``load`` is asked, and give it, with the people who alone may answer.

    None means everybody. The simple auth manager has its users' names as ids. Others know users by ids that no file
    names: there every answer is taken, and judged when it is used.
    """
    with opened(site, context) as (_, run):
        question = questions.read_question(run)
        if question is None:
            raise AirflowFailException("load has left no question: clear load, or start a new run")
        names = read_environment(run).spec.policy.approvers
        is_simple = conf.get("core", "auth_manager").endswith(".SimpleAuthManager")
        params = form_params(run.read_plan(), question.fields, read_rejections(run.home, run.environment))
        questions.write_answer(run, questions.Answer(question=question.digest))
        shown = Shown(
            subject=f"{plural(len(question.digests), 'held change')}, question {question.digest[:12]}",
            body=run.store.read_text(questions.QUESTION_TEXT),
            params=params,
        )
    return shown, [{"id": name, "name": name} for name in names] if names and is_simple else None


def shown_by_airflow(context: Context, ours: Mapping[str, Any]) -> Shown:
    """Give the question as Airflow shows it, after it was given ours."""
    payload = airflow_inside.CreateHITLDetailPayload.model_validate({"ti_id": context["ti"].id, **ours})
    shown = airflow_inside.SUPERVISOR_COMMS.send(payload)
    if not isinstance(shown, airflow_inside.HITLDetailRequestResult):
        raise AirflowFailException(f"Airflow does not take the question: {shown}")
    return Shown(subject=shown.subject, body=shown.body, params=shown.params or {})


def tell_of_question(site: Site, context: Context, *, link: str, since: datetime | None = None) -> None:
    """Tell the notifiers that a person is asked; again, if ``since`` says since when."""
    with opened(site, context) as (_, run):
        if question := questions.read_question(run):
            still, asked_at = ("still ", f", since {since:%Y-%m-%d %H:%M} UTC") if since else ("", "")
            waits = f"{still}{'waits' if len(question.digests) == 1 else 'wait'} for an approval{asked_at}"
            said = f"{plural(len(question.digests), 'change')} of {run.environment} {waits}"
            verdict = f"{said}: {listed_titles(run.read_plan(), question.digests)}"
            _tell(run, site, context, "held", lambda: verdict, question.digests, link=link)


def look_again(site: Site, context: Context, *, link: str, since: datetime | None) -> None:
    """Withdraw the question, and skip the task, where its set was replaced; else tell it again if ``since`` is set."""
    try:
        with opened(site, context) as (_, run):
            question, answer = questions.read_question(run), questions.read_answer(run)
            replaced = replacement(run, question.digests) if question else ""
            if question and answer and replaced:
                questions.write_answer(run, replace(answer, withdrawn=replaced))
                named = listed_titles(run.read_plan(), question.digests)
                verdict = f"The question is out of date, and nobody is asked any more: {named}; {replaced}"
                _tell(run, site, context, "withdrawn", lambda: verdict, question.digests)
        if since and not replaced:
            tell_of_question(site, context, link=link, since=since)
    except AirflowException as error:  # an answer is judged by the newest held set in any case
        log.warning("whether the question is out of date cannot be said, so it waits on: %s", error)
        return
    if replaced:
        skip(f"the question is withdrawn: {replaced}; nothing is sent")


def replacement(run: EnvironmentRun, digests: Collection[str]) -> str:
    """Give what replaced the set; empty while the newest held set still contains all of it."""
    newest = read_held(run.home, run.environment)
    if newest.covers(digests):
        return ""
    held = ", ".join(sorted(address.replace(" topic.", " ", 1) for address in newest.addresses.values()))
    return f"{REPLACED} {newest.found_by or 'no run'}, which holds {held or 'nothing'}"


# ---- the answer ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What became of the question of a run."""

    word: Word = "none"
    approval: Approval | None = None
    why: str = ""
    """Reason why there is no approval; empty with one."""
    decision: Decision = field(default_factory=Decision)
    """Decision of the person about each change."""
    comment: str = ""
    signature: str | None = None
    """Name of the person; None means that there is no answer."""

    def verdict(self, kind: str, plan: Plan, digests: Collection[str]) -> str:
        """Return ``rejected by admin (id 1): still read: delete clicks``."""
        said = f": {self.comment}" if self.comment else ""
        return f"{kind} by {self.signature}{said}: {listed_titles(plan, digests)}"

    @property
    def by_kind(self) -> Mapping[ToldKind, Collection[str]]:
        """Digests of the changes that were approved, and of those that were rejected; without the empty one."""
        found: Mapping[ToldKind, Collection[str]] = {
            "approved": self.decision.approved, "rejected": self.decision.rejected,
        }  # fmt: skip
        return {kind: digests for kind, digests in found.items() if digests}


def reply_of(run: EnvironmentRun, context: Context) -> Reply:
    """Read what became of the question.

    A run that was cleared may skip the question; then the record of its earlier try approves nothing.
    """
    question, answer = questions.read_question(run), questions.read_answer(run)
    state = task_states(context).get("approve")
    found = Reply(why="the question has no answer")
    if question and answer and answer.at:
        decision = questions.decision_of(question, answer)
        found = replace(found, decision=decision, comment=answer.comment, signature=answer.signature)
    if question and answer and state == "skipped" and answer.withdrawn and answer.question == question.digest:
        return replace(found, word="withdrawn", why=answer.withdrawn)
    if state != "success":
        return found
    given = questions.given_approval(run, run_after=context["dag_run"].run_after)
    if isinstance(given, Approval):
        return replace(found, word="approved", approval=given, why="")
    is_rejected = found.decision.rejected and not found.decision.approved
    return replace(found, word="rejected" if is_rejected else "none", why=given)


def record_answer(run: EnvironmentRun, event: Mapping[str, Any]) -> None:
    """Keep what Airflow's record of the answer says, beside the question that was asked."""
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


def take_answer(site: Site, context: Context, event: Mapping[str, Any]) -> None:
    with opened(site, context) as (_, run):
        record_answer(run, event)
        tell_of_answer(run, site, context, reply_of(run, context))


def tell_of_answer(run: EnvironmentRun, site: Site, context: Context, reply: Reply, *, unsent: str = "") -> None:
    """Tell the notifiers what was approved, and what was rejected; ``unsent`` says why nothing was sent, if known."""

    def verdict(kind: ToldKind, digests: Collection[str]) -> str:
        why = (unsent or replacement(run, digests)) if kind == "approved" else ""
        return f"{reply.verdict(kind, run.read_plan(), digests)}{f', and nothing was sent: {why}' if why else ''}"

    for kind, digests in reply.by_kind.items():
        _tell(run, site, context, kind, partial(verdict, kind, digests), digests)


def _tell(
    run: EnvironmentRun,
    site: Site,
    context: Context,
    kind: ToldKind,
    verdict: Callable[[], str],
    digests: Collection[str],
    link: str = "",
) -> None:
    for teller in TELLERS:
        teller.tell_of_one(
            run, site.options.notifiers, context, kind=kind, verdict=verdict, changes=len(digests), link=link
        )


# ---- the changes, and the end of the run ----


def approved_change(action: Action, site: Site, context: Context) -> XComValue:
    """Send one kind of the changes in question, if they were approved and nothing replaced them."""
    with opened(site, context) as (_, run):
        reply = reply_of(run, context)
        if reply.approval is None:
            skip(f"{reply.why}: nothing is sent")
        if replaced := replacement(run, reply.approval.digests):
            note_unsent(run, action, reply.approval.digests, OutcomeStatus.REFUSED, replaced)
            skip(f"{replaced}: nothing is sent")
    try:
        return send(site, context, action, approvals=(reply.approval,))
    except RefusedError:
        with opened(site, context) as (_, run):
            outcomes = read_outcomes(run, (action,))
        missed = [outcome for outcome in outcomes if outcome.status not in NO_FAILURE]
        if not (why := unasked(missed)):
            raise
        if len(missed) == len(outcomes):
            skip(f"{why}: nothing is sent")
        log.info("%s", why)
        return {**counts_of(outcomes)}


def unasked(outcomes: Sequence[Outcome]) -> str:
    """Say why none of these changes was sent, if no file asks for any of them any more; else empty."""
    if not outcomes or not all(outcome.is_unasked for outcome in outcomes):
        return ""
    named = some(f"{outcome.action} {outcome.topic}, because {outcome.message}" for outcome in outcomes)
    return f"the files do not ask for it any more: {named}"


def note_unsent(
    run: EnvironmentRun, action: Action, approved: Collection[str], status: OutcomeStatus, reason: str
) -> None:
    """Keep an outcome for each approved change that is not sent. What an earlier try sent keeps its own."""
    if run.store.has(outcomes_file(action)):
        return
    unsent = [g for g in run.read_plan().changes if g.change.action == action and g.digest in approved]
    if unsent:
        write_outcomes(run, (action,), [Outcome.of(gated, status, reason) for gated in unsent])


def report(site: Site, context: Context) -> XComValue:
    """Log the answer and report what was sent, or why nothing was.

    Is skipped when an approval sent nothing because its set was replaced, or because the files do not ask for it any
    more: that is no failure, and it must not look like success.
    """
    states = task_states(context)
    was_sent = any(states.get(action) == "success" for action in ACTIONS)
    has_ended = not was_sent and not failed_tasks(context)
    with opened(site, context) as (tools, run):
        reply = reply_of(run, context)
        replaced = replacement(run, reply.approval.digests) if has_ended and reply.approval else ""
        note_decision(run, reply)
        facts: XComValue = {
            "answer": reply.word,
            "replaced": replaced,
            "comment": reply.comment,
            "rejected": len(reply.decision.rejected),
        }
        outcomes = read_outcomes(run)
        unsent = replaced or (unasked(outcomes) if has_ended and reply.approval else "")
        why = reply.why or unsent
        headline = f"{HEADLINES[reply.word]}{f': {why}' if unsent or reply.word == 'withdrawn' else ''}."
        log.info("%s%s", f"{headline} " if has_ended else "", f"answer: {reply.word}{f'; {why}' if why else ''}")
        remarks = [why] if why else []
        if unsent:
            after_task(run)
            tools.flow.report(run, failed_tasks=())
            tell_of_answer(run, site, context, reply, unsent=unsent)
        if has_ended:
            after_reading(run)
            hand_over(run_result(run_report(run), remarks=remarks, headline=headline), context)
    if unsent:
        context["ti"].xcom_push(key="return_value", value=facts)  # Airflow keeps what a task returns that ends well
        skip(headline)
    if has_ended:
        return facts
    reported = changes.report(site, context, remarks=remarks)
    skipped = [kind for kind in kinds_of(run.read_plan()) if states.get(kind) == "skipped"] if was_sent else []
    if late := [kind for kind in skipped if not unasked([o for o in outcomes if o.action == kind])]:
        raise AirflowFailException(f"the set was replaced while it was being sent; not sent: {', '.join(late)}")
    return {**reported, **facts}


def note_decision(run: EnvironmentRun, reply: Reply) -> None:
    """Leave in the report who said what, and an outcome for each approved change that no task came to."""
    if reply.signature is None:
        return
    for action in ACTIONS if reply.approval else ():
        why = "the run ended before its turn; plan again"
        note_unsent(run, action, reply.decision.approved, OutcomeStatus.NOT_SENT, why)
    plan = run.read_plan()
    note(run, [reply.verdict(kind, plan, digests) for kind, digests in reply.by_kind.items()])

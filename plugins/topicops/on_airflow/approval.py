"""Ask a person about held changes, and send exactly what was approved.

When a change is sent, three things must be true: the recorded answer is Approve, the set is still part of the newest
held set, and the change's own precondition holds. Each task checks the first two here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from topicops.model.plans.approval import Approval
from topicops.model.plans.changes import ACTIONS, Action
from topicops.on_airflow import tasks
from topicops.on_airflow.tasks import Site, XComValue, step

if TYPE_CHECKING:
    from airflow.sdk.types import RuntimeTaskInstanceProtocol


log = logging.getLogger(__name__)

QUESTION = "question.md"
HIGHEST_ASK = 1000


class AskForApproval(TriggerDagRunOperator):
    """Starts the approval DAG for this run's held set, unless the same set has been asked about already.

    The run id is ``<digest of the set>.<n>``. The next n is used when the last run of that set failed or timed out, or
    was approved and the same changes are needed again. A rejected set is not asked about until it changes.
    """

    def execute(self, context: Context) -> None:
        ti = context["ti"]
        found = ti.xcom_pull(task_ids="gate") or {}
        if not found.get("question"):
            raise AirflowSkipException("nothing is held that an approval could let run")
        self.trigger_run_id = next_run_id(ti, self.trigger_dag_id, found["question"])
        self.conf = {"digests": found["digests"]}
        self.note = f"{len(found['digests'])} held change(s), found by {ti.dag_id}, run {ti.run_id}"
        super().execute(context)


def next_run_id(ti: RuntimeTaskInstanceProtocol, dag_id: str, digest: str) -> str:
    """The run that is to ask about a set. Raises ``AirflowSkipException`` when no question is needed."""
    for n in range(1, HIGHEST_ASK):
        run_id = f"{digest}.{n}"
        if not ti.get_dr_count(dag_id=dag_id, run_ids=[run_id]):
            return run_id
        state = ti.get_dagrun_state(dag_id=dag_id, run_id=run_id)
        if state in ("queued", "running"):
            raise AirflowSkipException(f"this set is being asked about: {dag_id}, run {run_id}")
        if state == "success" and was_rejected(ti, dag_id, run_id):
            raise AirflowSkipException(f"this set was rejected: {dag_id}, run {run_id}; it waits until it changes")
    raise AirflowFailException(f"one set of held changes was asked about {HIGHEST_ASK} times; look at {dag_id}")


def was_rejected(ti: RuntimeTaskInstanceProtocol, dag_id: str, run_id: str) -> bool:
    reported = ti.xcom_pull(dag_id=dag_id, run_id=run_id, task_ids="report") or {}
    return bool(reported.get("answer") == "rejected")


def load(site: Site, context: Context) -> XComValue:
    """A new plan with only the changes in question, and the question as Markdown.

    Skips this task, and so all others but the report, when a change is not needed any more or cannot be approved.
    """
    from topicops.flow.runs.held_changes import read_held
    from topicops.model.plans.plan_file import changes_to_json
    from topicops.on_airflow.question import question_markdown

    with step(site, context) as (flow, run):
        digests = frozenset(context["params"]["digests"]) or frozenset(read_held(run.home, run.environment).digests)
        flow.validate(run)
        flow.snapshot(run, states=True)
        flow.diff(run, engine="python")
        flow.plan(run, only=None)
        flow.gate(run, approval=None)
        # Only what an approval can lift: a part of too many deletes must not pass as few.
        wanted = [gated for gated in run.read_plan().changes if gated.digest in digests and gated.approvable]
        if not digests or len(wanted) < len(digests):
            missing = len(digests) - len(wanted)
            raise AirflowSkipException(f"{missing} of {len(digests)} changes are due no more, or wait for no approval")
        narrowed = replace(run.read_change_set(), changes=tuple(gated.change for gated in wanted), blocked=())
        run.store.write_text("changes.json", changes_to_json(narrowed))
        summary = flow.gate(run, approval=None).to_xcom()
        plan = run.read_plan()
        tasks.log_changes(plan)
        question = run.store.write_text(QUESTION, question_markdown(plan))
        return {**summary, "question": str(question), "digests": sorted(digests)}


def read_question(path: str) -> str:
    """The text above the buttons; the task reads it from its file, so that XCom carries only the path."""
    return Path(path).read_text(encoding="utf-8")


def approved_change(action: Action) -> Callable[[Site, Context], XComValue]:
    """The task that sends one kind of the changes in question, if they were approved and nothing replaced them."""

    def change(site: Site, context: Context) -> XComValue:
        if answer_of(context) != "approved":
            raise AirflowSkipException("there is no recorded approval: nothing is sent")
        digests = digests_of(context)
        if replaced := replacement(site, context, digests):
            raise AirflowSkipException(f"{replaced}: nothing is sent")
        name = approver_of(context)
        given = Approval(
            digests=digests, way="question", approver=name, signature=name or "unknown", given_at=datetime.now(UTC)
        )
        return tasks.send(site, context, action, approval=given)

    return change


def report(site: Site, context: Context) -> XComValue:
    """Log the answer and report what was sent, or which set replaced this one."""
    answer, states = answer_of(context), tasks.task_states(context)
    was_sent = any(states.get(action) == "success" for action in ACTIONS)
    replaced = replacement(site, context, digests_of(context)) if answer == "approved" and not was_sent else ""
    given: XComValue = {"answer": answer, "replaced": replaced}
    log.info("answer: %s%s", answer, f"; {replaced}" if replaced else "")
    if not was_sent and not tasks.failed_tasks(context):
        return given
    reported = tasks.report(site, context)
    if states.get("verify") == "skipped":
        raise AirflowFailException("the set was replaced while it was being sent; what was sent is not verified")
    return {**reported, **given}


def answer_of(context: Context) -> str:
    """``approved``, ``rejected`` or ``none``. Only a recorded Approve counts; Airflow records no rejection.

    A run that was cleared may skip the question; then the record of its earlier try is ignored.
    """
    if tasks.task_states(context).get("approve") != "success":
        return "none"
    record = context["ti"].xcom_pull(task_ids="approve")
    is_approved = isinstance(record, dict) and record.get("chosen_options") == ["Approve"]
    return "approved" if is_approved else "rejected"


def approver_of(context: Context) -> str | None:
    """The Airflow user who answered."""
    record = context["ti"].xcom_pull(task_ids="approve")
    user = record.get("responded_by_user") if isinstance(record, dict) else None
    return f"{user.get('name')} (id {user.get('id')})" if isinstance(user, dict) else None


def digests_of(context: Context) -> frozenset[str]:
    """What the question was about."""
    return frozenset((context["ti"].xcom_pull(task_ids="load") or {}).get("digests", ()))


def replacement(site: Site, context: Context, digests: Collection[str]) -> str:
    """What replaced the set; empty while the newest held set still contains all of it."""
    from topicops.flow.runs.held_changes import read_held

    with step(site, context) as (_, run):
        newest = read_held(run.home, run.environment)
    if newest.covers(digests):
        return ""
    now_held = ", ".join(sorted(newest.addresses.values())) or "nothing"
    return f"the set was replaced by that of {newest.found_by or 'no run'}, which holds {now_held}"

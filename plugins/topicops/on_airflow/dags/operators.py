"""The operators of tasks: links to the pages of a run, tasks that skip others, and the question to a person."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.providers.standard.triggers.hitl import HITLTrigger
from airflow.sdk import BaseOperator, BaseOperatorLink, Context, SkipMixin, conf
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from topicops.model.plans.changes import ACTIONS
from topicops.on_airflow.airflow_inside import IS_3_2
from topicops.on_airflow.names import PLAN_ROUTE, QUALITY_ROUTE, tab_address
from topicops.on_airflow.site import QUIET, SKIP, Patience, Site

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

    from topicops.on_airflow.tasks.approval import Shown

log = logging.getLogger(__name__)

_TO_THE_CHANGES = ("quality_before", "diff", "plan", "gate", "ask", *ACTIONS)
STEPS = frozenset((*_TO_THE_CHANGES, "verify", "announce", "quality_after", "report", "drift"))
"""Steps that a quiet run skips; a task that a user adds below them follows its own trigger rule."""


class _TabLink(BaseOperatorLink):
    """A tab of the run; the task itself computes the address and leaves it as an XCom."""

    route: ClassVar[str]

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002  Airflow's signature
        return tab_address(ti_key.dag_id, ti_key.run_id, self.route)


class PlanLink(_TabLink):
    name = "Plan"
    route = PLAN_ROUTE


class QualityLink(_TabLink):
    name = "Quality"
    route = QUALITY_ROUTE


class BranchStep(PythonOperator, SkipMixin):
    """A step that returns ``skip`` or ``quiet`` if some of the steps below it, or all, are not needed.

    Airflow skips these, and starts no process for them. A skipped task directly below it that is cleared alone is
    skipped again, as below every branch of Airflow.
    """

    inherits_from_skipmixin = True

    def execute(self, context: Context) -> dict[str, object]:
        returned: dict[str, object] = super().execute(context)
        unneeded = unneeded_of(returned, self.get_flat_relative_ids(upstream=False))
        if unneeded:
            ti = context["ti"]
            ti.xcom_push(key="return_value", value=returned)  # Airflow keeps it only if nothing is skipped
            self.skip(ti, [self.dag.get_task(task_id) for task_id in sorted(unneeded)])
        return returned


def unneeded_of(returned: Mapping[str, object], below: Collection[str]) -> Collection[str]:
    """Give the tasks below a step that are not needed by what it returned; the log says why."""
    if QUIET in returned:
        return STEPS & set(below)
    reasons = returned.get(SKIP)
    if not isinstance(reasons, Mapping):
        return ()
    for task_id, reason in reasons.items():
        log.info("%s is skipped: %s", task_id, reason)
    return reasons.keys()


class PlanStep(PythonOperator):
    operator_extra_links = (PlanLink(),)


class GateStep(BranchStep):
    """A step that makes the plan, and knows which tasks have nothing to do."""

    operator_extra_links = (PlanLink(),)


class QualityStep(PythonOperator):
    operator_extra_links = (QualityLink(),)


STEP_OPERATORS: Mapping[str, type[PythonOperator]] = {
    "plan": PlanStep,
    "snapshot": BranchStep,
    "gate": GateStep,
    "load": GateStep,
    "quality_before": QualityStep,
    "quality_after": QualityStep,
}
"""Operators by task id; the other steps have no tab."""


class AskForApproval(TriggerDagRunOperator):
    """Starts the approval DAG for this run's held set, unless the same set has been asked about already.

    The run id is ``3-changes-73c682d1aa21.<n>``, with the digest of the set in it. The next n is used when the last run
    of that set failed or timed out, or was answered and the same changes are needed again. The gate keeps back a set of
    which every change was rejected.
    """

    def execute(self, context: Context) -> None:
        from topicops.on_airflow.tasks.approval import to_ask

        self.trigger_run_id, self.conf, self.note = to_ask(context, self.trigger_dag_id)
        if context["ti"].get_dag(self.trigger_dag_id).is_paused:
            raise AirflowException(f"{self.trigger_dag_id} is paused, so nobody would be asked: unpause it")
        super().execute(context)


class AskPerson(ApprovalOperator):
    """Shows the question that ``load`` wrote, and records the answer that Airflow has of it.

    Airflow keeps the text of a task's first question when the task is cleared. The person would read an old text then,
    so the task fails unless Airflow shows exactly this question.

    Without an answer it wakes up from time to time. If the set was replaced, it withdraws the question and skips the
    task. If the question waits for long, it reminds the notifiers. Airflow's scheduler wakes it by the time limit with
    which it waits, and a worker looks, so no triggerer is needed; in Airflow 3.2 the triggerer does this. An answer
    that comes while the worker looks is kept: Airflow gives it to the task as soon as the task waits again.
    """

    def __init__(self, *, site: Site, patience: Patience, **kwargs: Any) -> None:
        super().__init__(response_timeout=patience.answer_within, **kwargs)
        self.site, self.patience = site, patience

    def execute(self, context: Context) -> None:
        from topicops.on_airflow.tasks.approval import Shown, begin_to_ask, tell_of_question

        asked, self.assigned_users = begin_to_ask(self.site, context)
        self.subject, self.body = f"{self.subject} {asked.subject}", asked.body
        self.params = ParamsDict({**asked.params})
        shown = self._shown(context)
        if shown != Shown(subject=self.subject, body=self.body, params=self.serialized_params):
            raise AirflowFailException(
                f"Airflow still shows an earlier question of this run ({shown.subject}); a run asks one question: "
                f"start a new run of {context['ti'].dag_id}"
            )
        tell_of_question(self.site, context, link=self._address(context))
        self._wait(context, datetime.now(UTC))

    def execute_complete(
        self, context: Context, event: dict[str, Any], asked_at: str = "", reminded: bool = False
    ) -> Any:
        """Take the answer, or look at the question again.

        Args:
            asked_at: When it was asked, in ISO form.
            reminded: Whether the notifiers were told again. Their own memory may be on a disk that is full.
        """
        from topicops.on_airflow.tasks.approval import look_again, take_answer

        asked, now = datetime.fromisoformat(asked_at), datetime.now(UTC)
        if event.get("error_type") == "timeout" and not self.patience.is_over(asked, now):
            reminds = not reminded and self.patience.reminds(asked, now)
            look_again(self.site, context, link=self._address(context), since=asked if reminds else None)
            self._wait(context, asked, reminded=reminded or reminds)
        if "error" not in event:
            take_answer(self.site, context, event)
        return super().execute_complete(context, event)

    def _wait(self, context: Context, asked_at: datetime, *, reminded: bool = False) -> NoReturn:
        now = datetime.now(UTC)
        look = self.patience.next_look(asked_at, now)
        then: dict[str, Any] = {
            "method_name": "execute_complete",
            "kwargs": {"asked_at": asked_at.isoformat(), "reminded": reminded},
        }
        if IS_3_2:  # without params it judges no field of the answer, as `validate_params_input`
            trigger = HITLTrigger(ti_id=context["ti"].id, options=self.options, params={}, timeout_datetime=now + look)
            given_up = look + self.patience.answer_within  # then the scheduler fails the task: no triggerer looks
            self.defer(trigger=trigger, timeout=given_up, **then)
        from airflow.sdk.exceptions import TaskAwaitingInput

        raise TaskAwaitingInput(timeout=look, **then)

    def validate_params_input(self, params_input: Mapping[str, Any]) -> None:
        """Do nothing: ``given_approval`` judges the recorded choices, and unknown ones approve nothing."""

    def _address(self, context: Context) -> str:
        """Give the address of the question; empty where Airflow does not know its own address."""
        is_known = bool(conf.get("api", "base_url", fallback=""))
        return self.generate_link_to_ui_from_context(context=context) if is_known else ""

    def _shown(self, context: Context) -> Shown:
        from topicops.on_airflow.tasks.approval import shown_by_airflow

        ours = {
            "options": self.options,
            "subject": self.subject,
            "body": self.body,
            "params": self.serialized_params,
            "assigned_users": self.assigned_users or [],
        }
        return shown_by_airflow(context, ours)

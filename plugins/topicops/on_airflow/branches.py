"""Steps that say which tasks below them are not needed in this run: Airflow skips these and starts no process."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.python import PythonOperator
from airflow.providers.standard.utils.skipmixin import SkipMixin
from airflow.sdk import Context

from topicops.model.plans.changes import ACTIONS, Action

if TYPE_CHECKING:
    from topicops.model.plans.plan import Approval, Plan

log = logging.getLogger(__name__)

SKIP = "skip"
"""In what a step returns: why each of these tasks is not needed, by task id."""
QUIET = "quiet"
"""In what a step returns: why none of the steps below it is needed."""
_TO_THE_CHANGES = ("quality_before", "diff", "plan", "gate", "ask", *ACTIONS)
STEPS = frozenset((*_TO_THE_CHANGES, "verify", "announce", "quality_after", "report", "drift"))
"""That a quiet run skips; a task that somebody else put below them follows its own trigger rule."""


class BranchStep(PythonOperator, SkipMixin):
    """A step that returns ``skip`` or ``quiet`` if some of the steps below it, or all, are not needed.

    A skipped task directly below it that is cleared alone is skipped again, as below every branch of Airflow.
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
    """The tasks below a step that are not needed by what it returned; the log says why."""
    if QUIET in returned:
        return STEPS & set(below)
    reasons = returned.get(SKIP)
    if not isinstance(reasons, Mapping):
        return ()
    for task_id, reason in reasons.items():
        log.info("%s is skipped: %s", task_id, reason)
    return reasons.keys()


def unneeded_steps(
    plan: Plan, approvals: Sequence[Approval], *, mode: str, asks: bool, judged_by: str = ""
) -> Mapping[str, str]:
    """Why these steps after the gate are not needed, by task id.

    Args:
        approvals: As the steps that send changes take them.
        asks: Whether an approval could let something run.
        judged_by: The run after whose changes the rules held in this very state; empty: none, or too long ago.
    """
    is_plan = mode != "apply"
    kinds = frozenset[Action]() if is_plan else kinds_to_send(plan, approvals)
    why = "mode is plan: nothing is sent" if is_plan else "nothing is to be sent"
    found: dict[str, str] = {kind: why if is_plan else f"nothing to {kind}" for kind in ACTIONS if kind not in kinds}
    if not kinds:
        found |= {"verify": why, "announce": why}
    if not kinds and judged_by:
        found["quality_after"] = f"{why}, and the rules held in this very state: run {judged_by}"
    if not asks:
        found["ask"] = "nothing is held that an approval could let run"
    return found


def kinds_to_send(plan: Plan, approvals: Sequence[Approval]) -> frozenset[Action]:
    """The kinds of which a change may be sent."""
    from topicops.model.plans.plan import may_run

    return frozenset(gated.change.action for gated in plan.changes if may_run(gated, approvals))


def kinds_of(plan: Plan) -> frozenset[Action]:
    """The kinds of change that the plan has."""
    return frozenset(gated.change.action for gated in plan.changes)


def kinds_not_in(plan: Plan) -> Mapping[str, str]:
    """Why the tasks of the other kinds of change are not needed."""
    return {action: f"nothing to {action}" for action in ACTIONS if action not in kinds_of(plan)}

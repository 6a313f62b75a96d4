"""Operators whose task details have a link to the Plan or the Quality tab."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import BaseOperator, BaseOperatorLink

from topicops.on_airflow.branches import BranchStep
from topicops.on_airflow.routes import PLAN_ROUTE, QUALITY_ROUTE

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey


class _TabLink(BaseOperatorLink):
    """A tab of the run; the task itself computes the address and leaves it as an XCom."""

    route: ClassVar[str]

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002  Airflow's signature
        return tab_address(ti_key.dag_id, ti_key.run_id, self.route)


def tab_address(dag_id: str, run_id: str, route: str) -> str:
    """Of a tab of a run; absolute where Airflow knows its own address."""
    from airflow.utils.helpers import build_airflow_dagrun_url

    return f"{build_airflow_dagrun_url(quote(dag_id), quote(run_id))}/plugin/{route}"


class PlanLink(_TabLink):
    name = "Plan"
    route = PLAN_ROUTE


class QualityLink(_TabLink):
    name = "Quality"
    route = QUALITY_ROUTE


class PlanStep(PythonOperator):
    """A step that makes the plan."""

    operator_extra_links = (PlanLink(),)


class GateStep(BranchStep):
    """A step that makes the plan, and knows which tasks have nothing to do."""

    operator_extra_links = (PlanLink(),)


class QualityStep(PythonOperator):
    """A step that evaluates rules."""

    operator_extra_links = (QualityLink(),)


STEP_OPERATORS: dict[str, type[PythonOperator]] = {
    "plan": PlanStep,
    "snapshot": BranchStep,
    "gate": GateStep,
    "load": GateStep,
    "quality_before": QualityStep,
    "quality_after": QualityStep,
}
"""By task id; the other steps have no tab."""

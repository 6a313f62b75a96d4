"""The function of each task, by DAG and task id."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow.sdk import Context

from topicops.model.plans.changes import ACTIONS
from topicops.on_airflow.site import Site
from topicops.on_airflow.tasks import approval, changes, pipeline

STEPS: Mapping[str, Mapping[str, Callable[[Site, Context], object]]] = {
    "pipeline": {
        "validate": pipeline.validate,
        "snapshot": pipeline.snapshot,
        "quality_before": pipeline.quality_before,
        "diff": pipeline.diff,
        "plan": pipeline.plan,
        "gate": pipeline.gate,
        **{action: changes.pipeline_change(action) for action in ACTIONS},
        "verify": changes.verify,
        "quality_after": changes.quality_after,
        "report": changes.report,
    },
    "approval": {
        "load": approval.load,
        **{action: approval.approved_change(action) for action in ACTIONS},
        "verify": changes.verify,
        "quality_after": changes.quality_after,
        "report": approval.report,
    },
    "drift": {
        "validate": pipeline.validate,
        "snapshot": pipeline.snapshot,
        "quality_before": pipeline.quality_before,
        "diff": pipeline.diff,
        "plan": pipeline.plan_to_look_at,
        "drift": pipeline.drift,
    },
}
"""Each returns the XCom of its task."""

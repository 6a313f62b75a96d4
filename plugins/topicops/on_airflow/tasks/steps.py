"""The function of each task, by DAG and task id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from airflow.sdk import Context

from topicops.model.plans.changes import ACTIONS
from topicops.on_airflow.site import Site
from topicops.on_airflow.tasks import approval, changes, planning

STEPS: Mapping[str, Mapping[str, Callable[[Site, Context], object]]] = {
    "pipeline": {
        "validate": planning.validate,
        "snapshot": planning.snapshot,
        "quality_before": planning.quality_before,
        "diff": planning.diff,
        "plan": planning.plan,
        "gate": planning.gate,
        **{action: partial(changes.pipeline_change, action) for action in ACTIONS},
        "verify": changes.verify,
        "quality_after": changes.quality_after,
        "report": changes.report,
    },
    "approval": {
        "load": approval.load,
        **{action: partial(approval.approved_change, action) for action in ACTIONS},
        "verify": changes.verify,
        "quality_after": changes.quality_after,
        "report": approval.report,
    },
    "drift": {
        "validate": planning.validate,
        "snapshot": planning.snapshot,
        "quality_before": planning.quality_before,
        "diff": planning.diff,
        "plan": planning.plan_to_look_at,
        "drift": planning.drift,
    },
}
"""Each returns the XCom of its task."""

"""A run's first task hands on in which home it runs; each later one fails where its own is another folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk.types import RuntimeTaskInstanceProtocol

    from topicops.flow.runs.run import EnvironmentRun

FIRST_TASKS = ("validate", "load")
"""Of the pipeline and the drift check, and of the approval."""
KEY = "home"
"""Of the XCom."""


def keep_to_one_home(run: EnvironmentRun, ti: RuntimeTaskInstanceProtocol) -> None:
    """Raise ``UsageError`` when ``TOPICOPS_HOME`` here is not that of the run's first task."""
    import msgspec

    from topicops.flow.runs.guards import place_of, require_same_home

    if ti.task_id in FIRST_TASKS:
        ti.xcom_push(key=KEY, value=msgspec.to_builtins(place_of(run.home)))
        return
    handed_on = (ti.xcom_pull(task_ids=first, key=KEY) for first in FIRST_TASKS)
    require_same_home(run.home, next(filter(None, handed_on), None))

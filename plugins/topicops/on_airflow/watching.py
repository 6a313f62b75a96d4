"""Does anybody notice when no good run comes any more? A metric with its age, and an alert on a run that takes long.

Both need no report that worked. The metric is sent each time Airflow reads the DAG file, whether runs come or not.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from topicops.on_airflow.notifying import SETTING, begin_metrics, count, metrics_are_on, tell_setting_of_end
from topicops.on_airflow.params import duration_of

if TYPE_CHECKING:
    from topicops.on_airflow.tasks import Site

AGE = "last_good_run_age_s"
NEVER = "0s"


def count_ages(environments: Collection[str]) -> None:
    """The gauge ``topicops.<environment>.last_good_run_age_s`` of each environment.

    Without metrics nothing is imported for it: a DAG file is parsed every half minute.
    """
    if not metrics_are_on():
        return
    from topicops.flow.runs.newest_good import age_of_newest_good
    from topicops.flow.runs.run import home_folder

    begin_metrics()
    for environment in environments:
        count(environment, {AGE: age_of_newest_good(home_folder(), environment)})


def late_alert(site: Site) -> DeadlineAlert | None:
    """Of the pipeline; None where no setting asks for it. Raises ``UsageError``."""
    within = duration_of("TOPICOPS_RUN_WITHIN", NEVER)
    if not within or not os.environ.get(SETTING):
        return None
    return DeadlineAlert(
        name="a run takes too long",
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=within,
        callback=SyncCallback(tell_late, kwargs={"environment": site.environment, "within": str(within)}),
    )


def tell_late(*, environment: str, within: str, context: Mapping[str, Any]) -> None:
    """Tell the notifiers of the setting that this run has not ended in time.

    Args:
        context: What Airflow gives a Deadline alert: ``dag_run`` and ``deadline``, as JSON.
    """
    from topicops import flow

    dag_run = context["dag_run"]
    run = flow.open_run(environment=environment, topics=Path(), group=dag_run["dag_id"], run_id=dag_run["dag_run_id"])
    tell_setting_of_end(run, f"it has not ended within {within}")

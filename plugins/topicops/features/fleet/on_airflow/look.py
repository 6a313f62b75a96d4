"""The task of the DAG of all environments."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from topicops.features.fleet import fleet as steps
from topicops.features.fleet.fleet import Fleet
from topicops.features.fleet.values import FleetReport, Standing, fleet_markdown, fleet_text
from topicops.model.errors import TopicopsError
from topicops.on_airflow.connections import from_airflow
from topicops.on_airflow.dags.environment_dags import environments
from topicops.on_airflow.plugged import QUALITY, TASK_ENGINE
from topicops.on_airflow.site import NO_RETRY
from topicops.on_airflow.tasks.opening import XComValue, bundle_version, only_of, refuse_unknown_params
from topicops.plugged import after_task

log = logging.getLogger(__name__)


def look(topics: Path, context: Context, look_at: Callable[[Fleet, str | None], FleetReport]) -> XComValue:
    """Log a line for each environment, and push the table. Fails at the end for broken ones."""
    ti = context["ti"]
    try:
        refuse_unknown_params(context)
        fleet = steps.open_fleet(
            environments(topics),
            topics=topics,
            group=ti.dag_id,
            run_id=ti.run_id,
            connections=from_airflow,
            progress=log.info,
            version=bundle_version(ti, topics),
        )
        report = look_at(fleet, only_of(context))
    except NO_RETRY as error:
        raise AirflowFailException(str(error)) from error
    except TopicopsError as error:
        raise AirflowException(str(error)) from error
    log.info("\n%s", fleet_text(report))
    ti.xcom_push(key="fleet", value=fleet_markdown(report))
    found: XComValue = {
        "summary": report.summary,
        "environments": {each.environment: each.result.value for each in report.environments},
    }
    if not report.broken:
        return found
    ti.xcom_push(key="environments", value=found)
    names = "; ".join(f"{result.environment}: {result.summary}" for result in report.broken)
    # another try may find a cluster that did not answer
    may_heal = any(each.result is Standing.UNREACHABLE for each in report.broken)
    raise (AirflowException if may_heal else AirflowFailException)(f"{len(report.broken)} broken: {names}")


def look_at_fleet(fleet: Fleet, only: str | None) -> FleetReport:
    judges = [quality.before for quality in QUALITY]
    report = steps.look_at_fleet(fleet, engine=TASK_ENGINE, judges=judges, only=only)
    for run in fleet.runs_of(report):
        after_task(run, mode="drift")
    return report

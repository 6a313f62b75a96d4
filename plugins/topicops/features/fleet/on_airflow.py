"""The DAG of all environments together: one task, and one Spark application, that only reads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, Context, get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from topicops.features.fleet.values import FleetReport, Standing
from topicops.model.errors import TopicopsError
from topicops.on_airflow.dags import DEFAULT_ARGS, TAGS, environments
from topicops.on_airflow.options import schedule_of_setting
from topicops.on_airflow.params import only_of, only_param, refuse_unknown_params
from topicops.on_airflow.tasks import NO_RETRY, XComValue, bundle_version

if TYPE_CHECKING:
    from topicops.features.fleet.fleet import Fleet

log = logging.getLogger(__name__)

FLEET_ID = "topic_fleet_drift"
FLEET_DOC = """
Shows where the live clusters of all environments differ from the topic files, with one Spark application for all of
them. It only reads: no lease, no question, no change. A difference does not fail the run. An environment that cannot
be read fails it, after all others are done.
"""

LookAtFleet = Callable[["Fleet", str | None], FleetReport]


def fleet_dags(named: Collection[str], topics: Path) -> tuple[DAG, ...]:
    """``topic_fleet_drift``, where there are several environments."""
    return (fleet_dag(topics),) if len(named) > 1 else ()


def fleet_dag(topics: Path) -> DAG:
    with DAG(
        dag_id=FLEET_ID,
        dag_display_name="all environments: drift",
        schedule=schedule_of_setting("TOPICOPS_FLEET_SCHEDULE", FLEET_ID),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        default_args=dict(DEFAULT_ARGS),
        params={"only": only_param()},
        tags=list(TAGS),
        doc_md=FLEET_DOC,
    ) as dag:
        PythonOperator(
            task_id="look",
            python_callable=lambda: look(topics, get_current_context(), look_at_fleet),
            doc_md=look.__doc__,
        )
    return dag


def look(topics: Path, context: Context, look_at: LookAtFleet) -> XComValue:
    """A line for each environment in the log, and the table in XCom ``fleet``. Fails at the end for broken ones."""
    from topicops.features.fleet.text import fleet_markdown, fleet_summary, fleet_text

    ti = context["ti"]
    try:
        refuse_unknown_params(context)
        report = look_at(open_fleet(topics, context), only_of(context))
    except NO_RETRY as error:
        raise AirflowFailException(str(error)) from error
    except TopicopsError as error:
        raise AirflowException(str(error)) from error
    log.info("\n%s", fleet_text(report))
    ti.xcom_push(key="fleet", value=fleet_markdown(report))
    found: XComValue = {
        "summary": fleet_summary(report),
        "environments": {each.environment: each.result.value for each in report.environments},
    }
    if report.broken:
        ti.xcom_push(key="environments", value=found)
        raise _failure(report)
    return found


def open_fleet(topics: Path, context: Context) -> Fleet:
    from topicops.features.fleet import fleet
    from topicops.on_airflow.connections import from_airflow

    ti = context["ti"]
    return fleet.open_fleet(
        environments(topics),
        topics=topics,
        group=ti.dag_id,
        run_id=ti.run_id,
        connections=from_airflow,
        progress=log.info,
        version=bundle_version(ti, topics),
    )


def look_at_fleet(fleet: Fleet, only: str | None) -> FleetReport:
    from topicops.features.fleet import fleet as steps
    from topicops.on_airflow.plugged import QUALITY, TASK_ENGINE
    from topicops.plugged import after_task

    judges = [quality.before for quality in QUALITY]
    report = steps.look_at_fleet(fleet, engine=TASK_ENGINE, judges=judges, only=only)
    for run in steps.runs_of(fleet, report):
        after_task(run, mode="drift")
    return report


def _failure(report: FleetReport) -> AirflowException:
    """With a retry only where another try may find a cluster that did not answer."""
    names = "; ".join(f"{result.environment}: {result.summary}" for result in report.broken)
    may_heal = any(each.result is Standing.UNREACHABLE for each in report.broken)
    return (AirflowException if may_heal else AirflowFailException)(f"{len(report.broken)} broken: {names}")

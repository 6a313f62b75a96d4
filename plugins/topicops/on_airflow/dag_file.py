"""What a DAG file needs: all DAGs of one folder of topics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, CronTriggerTimetable, get_current_context, get_parsing_context
from airflow.sdk.exceptions import AirflowFailException

import topicops.features.fleet.on_airflow
from topicops.model.errors import UsageError
from topicops.model.printable import printable
from topicops.on_airflow.dags import TAGS, environment_dags, environments, misnamed
from topicops.on_airflow.tellers import TELLERS
from topicops.on_airflow.watching import count_ages, gone, silent

PROBLEMS_ID = "topic_problems"
DAGS: Mapping[str, Callable[[Collection[str], Path], Sequence[DAG]]] = {
    topicops.features.fleet.on_airflow.FLEET_ID: topicops.features.fleet.on_airflow.fleet_dags,
}  # fmt: skip
"""Functions that take the names of the environments and give the DAG, if it is to be there, by its id.

Deleting a feature deletes its lines here.
"""
log = logging.getLogger(__name__)


def dags_of(topics: Path) -> dict[str, DAG]:
    """The DAGs by id: one set for each file in ``<topics>/environments/``, and one DAG for all.

    In the process of a task these are only the DAGs of its own environment. An environment whose DAGs cannot be made
    is left out, and the others keep theirs; then the DAG ``topic_problems`` fails each hour and says why. So it does
    while an environment has had no good run for days, or its file is gone.

    Raises:
        UsageError: A setting, which counts for all environments, is no schedule or no mode.
    """
    named, problems = environments(topics), [*misnamed(topics)]
    dag_id = get_parsing_context().dag_id
    wanted = [name for name in named if dag_id in (None, PROBLEMS_ID) or dag_id.endswith(f"_{name}")]
    dags = [dag for name in wanted for dag in _dags_or_none(name, topics, problems)]
    for plugged_id, plugged in DAGS.items():
        if dag_id in (None, plugged_id):
            dags += plugged(named, topics)
    if dag_id in (None, PROBLEMS_ID):
        problems += gone(named, topics)
        problems += silent(name for name in named if _has_schedule(dags, f"topic_pipeline_{name}"))
    if dag_id in (None, PROBLEMS_ID) and problems:
        dags.append(problems_dag(problems))
    if dag_id is None:
        count_ages(named)
    return {dag.dag_id: dag for dag in dags}


def _dags_or_none(environment: str, topics: Path, problems: list[str]) -> Iterator[DAG]:
    try:
        yield from environment_dags(environment, topics)
    except UsageError:
        raise
    except Exception as error:  # one environment's file must not take the DAGs of all others away
        log.exception("%s has no DAGs: they cannot be made from its file", printable(environment))
        problems.append(f"{printable(environment)} has no DAGs: {type(error).__name__}: {printable(str(error))}")


def _has_schedule(dags: Sequence[DAG], dag_id: str) -> bool:
    return any(dag.dag_id == dag_id and dag.schedule is not None for dag in dags)


def problems_dag(problems: Sequence[str]) -> DAG:
    """``topic_problems``: there while something keeps runs from coming; it fails each hour with the reason."""
    with DAG(
        dag_id=PROBLEMS_ID,
        dag_display_name="all environments: problems",
        schedule=CronTriggerTimetable("0 * * * *", timezone="UTC", run_immediately=True),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        tags=list(TAGS),
        doc_md="Some environments have no DAGs, no file or no good run for days. The task says which, and why.",
    ) as dag:
        PythonOperator(
            task_id="say", python_callable=lambda: say(problems, get_current_context()["ti"].run_id), retries=0
        )
    return dag


def say(problems: Sequence[str], run_id: str) -> None:
    """Tell the notifiers of the setting, once for the same problems, and fail."""
    from topicops.flow.runs.run import open_run

    run = open_run(environment="all environments", topics=Path(), group=PROBLEMS_ID, run_id=run_id)
    for teller in TELLERS:
        teller.tell_setting_of_end(run, "; ".join(problems))
    raise AirflowFailException("; ".join(problems))

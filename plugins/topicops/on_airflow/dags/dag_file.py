"""What a DAG file needs: all DAGs of one folder of topics."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, CronTriggerTimetable, get_current_context, get_parsing_context
from airflow.sdk.exceptions import AirflowFailException

from topicops.model.errors import UsageError
from topicops.model.printable import printable
from topicops.on_airflow.airflow_inside import begin_metrics, count, metrics_are_on
from topicops.on_airflow.dags.environment_dags import TAGS, environment_dags, environments, misnamed
from topicops.on_airflow.names import place_of
from topicops.on_airflow.plugged_at_start import TELLERS
from topicops.on_airflow.site import duration_of

if TYPE_CHECKING:
    from topicops.flow.runs.run import Place

PROBLEMS_ID = "topic_problems"
log = logging.getLogger(__name__)


def dags_of(topics: Path) -> dict[str, DAG]:
    """Return the DAGs by id: one set for each file in ``<topics>/environments/``.

    In the process of a task these are only the DAGs of its own environment. An environment whose DAGs cannot be made
    is left out, and the others keep theirs; then the DAG ``topic_problems`` fails each hour and says why. So it does
    while an environment has had no good run for days, or its file is gone.

    Raises ``UsageError``: A setting, which counts for all environments, is no schedule or no mode.
    """
    named, problems = environments(topics), [*misnamed(topics)]
    dag_id = get_parsing_context().dag_id
    wanted = [name for name in named if dag_id in (None, PROBLEMS_ID) or dag_id.endswith(f"_{name}")]
    dags = [dag for name in wanted for dag in _dags_or_none(name, topics, problems)]
    if dag_id in (None, PROBLEMS_ID):
        problems += gone(named, topics)
        scheduled = {dag.dag_id for dag in dags if dag.schedule is not None}
        problems += silent(name for name in named if f"topic_pipeline_{name}" in scheduled)
        if problems:
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


def problems_dag(problems: Sequence[str]) -> DAG:
    """Return ``topic_problems``: there while something keeps runs from coming; it fails each hour with the reason."""
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


# ---- does anybody notice when no good run comes any more? None of these needs a report that worked. ----


def count_ages(environments: Collection[str]) -> None:
    """Set the gauge ``topicops.<environment>.last_good_run_age_s`` of each environment.

    Without metrics nothing is imported for it: a DAG file is parsed every half minute.
    """
    if not metrics_are_on():
        return
    from topicops.flow.runs.memory import age_of_newest_good
    from topicops.flow.runs.run import home_folder

    begin_metrics()
    for environment in environments:
        count(environment, {"last_good_run_age_s": age_of_newest_good(home_folder(), environment)})


def silent(environments: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each that had a good run and has none any more. Raises ``UsageError``.

    The age is that of a file, because a DAG file is parsed every half minute: to read it would take imports.
    """
    within, home = duration_of("TOPICOPS_GOOD_RUN_WITHIN", "3d"), os.environ.get("TOPICOPS_HOME")
    if not within or not home:
        return
    for environment in environments:
        try:
            last = datetime.fromtimestamp(_written_at(_newest_good(home) / f"{environment}.json"), UTC)
        except FileNotFoundError:
            continue  # it never had one, which the first page says
        except OSError as error:
            yield f"{environment}: nobody knows when its last good run was: {error.filename or home}: {error.strerror}"
            continue
        if datetime.now(UTC) - last > within:
            yield (
                f"{environment} has had no good run since {last:%Y-%m-%d %H:%M} UTC: see whether its pipeline is "
                "paused, whether its runs fail, and whether Airflow fetches the newest files"
            )


def _newest_good(home: str) -> Place:
    """Return the folder of what good runs left; only a home in a store takes imports, and a request for each file."""
    if "://" not in home:
        return Path(home, "newest-good")
    from topicops.flow.runs.run import home_folder

    return home_folder() / "newest-good"


def _written_at(place: Place) -> float:
    if isinstance(place, Path):
        return place.stat().st_mtime
    from topicops.flow.runs.run import written_at

    return written_at(place)


def gone(environments: Collection[str], topics: Path) -> Iterator[str]:
    """Yield a sentence for each environment whose good runs came from these topics, and which has no file any more."""
    if not (home := os.environ.get("TOPICOPS_HOME")):
        return
    paths: list[Place] = sorted(_newest_good(home).glob("*.json"), key=str)
    for path in paths:
        if path.stem in environments:
            continue
        try:
            last = json.loads(path.read_bytes())
            was, at = last.get("topics"), last["at"]
        except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
            yield f"{path.stem}: whether its file was taken away cannot be said: {path}: {printable(str(error))}"
            continue
        if was == place_of(topics):
            yield (
                f"{path.stem} has no DAGs any more: environments/{path.stem}.yaml is gone, and its last good run ended "
                f"at {at}; bring the file back, or, if this is meant, delete {path}"
            )

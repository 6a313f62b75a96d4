"""Does anybody notice when no good run comes any more? A metric with its age, a DAG that fails, an alert on a late run.

None needs a report that worked. The metric is sent each time Airflow reads the DAG file, whether runs come or not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from topicops.model.printable import printable
from topicops.on_airflow.dag_ids import place_of
from topicops.on_airflow.metrics import begin_metrics, count, metrics_are_on
from topicops.on_airflow.params import duration_of
from topicops.on_airflow.tellers import TELLERS

if TYPE_CHECKING:
    from topicops.on_airflow.tasks import Site

AGE = "last_good_run_age_s"
NEVER, GOOD_RUN_WITHIN = "0s", "3d"


def count_ages(environments: Collection[str]) -> None:
    """The gauge ``topicops.<environment>.last_good_run_age_s`` of each environment.

    Without metrics nothing is imported for it: a DAG file is parsed every half minute.
    """
    if not metrics_are_on():
        return
    from topicops.flow.runs.memory import age_of_newest_good
    from topicops.flow.runs.run import home_folder

    begin_metrics()
    for environment in environments:
        count(environment, {AGE: age_of_newest_good(home_folder(), environment)})


def silent(environments: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each that had a good run and has none any more. Raises ``UsageError``.

    The age is that of a file, because a DAG file is parsed every half minute: to read it would take imports.

    Args:
        environments: Those whose pipeline has a schedule.
    """
    within, home = duration_of("TOPICOPS_GOOD_RUN_WITHIN", GOOD_RUN_WITHIN), os.environ.get("TOPICOPS_HOME")
    if not within or not home:
        return
    for environment in environments:
        try:
            last = datetime.fromtimestamp(Path(home, "newest-good", f"{environment}.json").stat().st_mtime, UTC)
        except FileNotFoundError:
            continue  # it never had one, which the first page says
        except OSError as error:
            yield f"{environment}: nobody knows when its last good run was: {error.filename}: {error.strerror}"
            continue
        if datetime.now(UTC) - last > within:
            yield (
                f"{environment} has had no good run since {last:%Y-%m-%d %H:%M} UTC: see whether its pipeline is "
                "paused, whether its runs fail, and whether Airflow fetches the newest files"
            )


def gone(environments: Collection[str], topics: Path) -> Iterator[str]:
    """Yield a sentence for each whose good runs came from these files, and which has no file any more.

    Args:
        environments: Those that have a file.
        topics: The folder of topics.
    """
    if not (home := os.environ.get("TOPICOPS_HOME")):
        return
    for path in sorted(Path(home, "newest-good").glob("*.json")):
        if path.stem in environments:
            continue
        try:
            last = json.loads(path.read_text(encoding="utf-8"))
            was, at = last.get("topics"), last["at"]
        except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
            yield f"{path.stem}: whether its file was taken away cannot be said: {path}: {printable(str(error))}"
            continue
        if was == place_of(topics):
            yield (
                f"{path.stem} has no DAGs any more: environments/{path.stem}.yaml is gone, and its last good run ended "
                f"at {at}; bring the file back, or, if this is meant, delete {path}"
            )


def late_alert(site: Site) -> DeadlineAlert | None:
    """Of the pipeline; None where no setting asks for it. Raises ``UsageError``."""
    within = duration_of("TOPICOPS_RUN_WITHIN", NEVER)
    if not within or not any(teller.has_setting() for teller in TELLERS):
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
    from topicops.flow.runs.run import open_run

    dag_run = context["dag_run"]
    run = open_run(environment=environment, topics=Path(), group=dag_run["dag_id"], run_id=dag_run["dag_run_id"])
    for teller in TELLERS:
        teller.tell_setting_of_end(run, f"it has not ended within {within}")

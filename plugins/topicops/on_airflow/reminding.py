"""A reminder of a question that nobody has answered yet: a Deadline alert of the DAG that asks.

Airflow calls it in a worker, once for each run, and gives it what can be written as JSON. So only notifiers that a
setting names can be told; those in a DAG file cannot.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk import Context
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from topicops.model.printable import plural
from topicops.on_airflow.notifying import SETTING, tell
from topicops.on_airflow.params import duration_of

if TYPE_CHECKING:
    from topicops.on_airflow.tasks import Site

log = logging.getLogger(__name__)

REMIND_AFTER = "1h"


def reminder(site: Site) -> DeadlineAlert | None:
    """Of the DAG that asks; None where no setting names somebody to remind. Raises ``UsageError``."""
    after = duration_of("TOPICOPS_REMIND_AFTER", REMIND_AFTER)
    if not after or not os.environ.get(SETTING):
        return None
    where = {"environment": site.environment, "topics": str(site.topics)}
    return DeadlineAlert(
        name="a question waits",
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=after,
        callback=SyncCallback(remind, kwargs=where),
    )


def remind(*, environment: str, topics: str, context: Mapping[str, Any]) -> None:
    """Tell the notifiers of the setting that the question of this run still waits; nothing if it was answered.

    Args:
        context: What Airflow gives a Deadline alert: ``dag_run`` and ``deadline``, as JSON.
    """
    from topicops import flow
    from topicops.flow.runs.questions import read_answer, read_question
    from topicops.flow.telling import telling_of_answer
    from topicops.on_airflow.question import listed_titles

    dag_run = context["dag_run"]
    run = flow.open_run(
        environment=environment, topics=Path(topics), group=dag_run["dag_id"], run_id=dag_run["dag_run_id"]
    )
    question, answer = read_question(run), read_answer(run)
    if question is None or answer is None or answer.question != question.digest or answer.at is not None:
        log.info("no question of %s waits", run.name)
        return
    changes = len(question.digests)
    verdict = (
        f"{plural(changes, 'change')} of {environment} still wait for an approval, since {dag_run['queued_at']}: "
        f"{listed_titles(run.read_plan(), question.digests)}"
    )
    telling = partial(telling_of_answer, run, kind="held", verdict=verdict, changes=changes)
    tell(telling, (), cast("Context", dict(context)))

"""What a DAG file needs: all DAGs of one folder of topics."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from airflow.sdk import DAG, get_parsing_context

from topicops.model.errors import UsageError
from topicops.model.printable import printable
from topicops.on_airflow.dags import environment_dags, environments
from topicops.on_airflow.fleet import FLEET_ID, fleet_dags

log = logging.getLogger(__name__)


def dags_of(topics: Path) -> dict[str, DAG]:
    """The DAGs by id: one set for each file in ``<topics>/environments/``, and one DAG for all.

    In the process of a task these are only the DAGs of its own environment. An environment whose DAGs cannot be made
    is left out with an error in the log, and the others keep theirs.

    Raises:
        UsageError: A setting, which counts for all environments, is no schedule or no mode.
    """
    named = environments(topics)
    dag_id = get_parsing_context().dag_id
    wanted = [name for name in named if dag_id is None or dag_id.endswith(f"_{name}")]
    dags = [dag for name in wanted for dag in _dags_or_none(name, topics)]
    return {dag.dag_id: dag for dag in (*dags, *(fleet_dags(named, topics) if dag_id in (None, FLEET_ID) else ()))}


def _dags_or_none(environment: str, topics: Path) -> Iterator[DAG]:
    try:
        yield from environment_dags(environment, topics)
    except UsageError:
        raise
    except Exception:  # one environment's file must not take the DAGs of all others away
        log.exception("%s has no DAGs: they cannot be made from its file", printable(environment))

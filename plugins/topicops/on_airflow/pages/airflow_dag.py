"""What the pages show of a DAG and its newest run, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from topicops.flow.runs.run import now

GOES_ON = frozenset(("queued", "running"))
FETCHED_WITHIN = timedelta(minutes=20)
"""Airflow fetches a bundle every five minutes where nobody says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowRun:
    dag_id: str
    run_id: str
    state: str
    """``queued``, ``running``, ``success`` or ``failed``."""
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def name(self) -> str:
        return f"{self.dag_id}/{self.run_id}"

    @property
    def goes_on(self) -> bool:
        return self.state in GOES_ON


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowDag:
    dag_id: str
    is_paused: bool = False
    is_gone: bool = False
    """Its file makes it no more, or cannot be read."""
    next_run_at: datetime | None = None
    has_schedule: bool = True
    files_fetched_at: datetime | None = None
    """When Airflow last fetched the folder of the DAGs; None: not known."""
    newest: AirflowRun | None = None


def not_fetched_since(dag: AirflowDag) -> datetime | None:
    """When Airflow fetched the DAG's files last, if that is too long ago."""
    fetched = dag.files_fetched_at
    return fetched if fetched and now() - fetched > FETCHED_WITHIN else None

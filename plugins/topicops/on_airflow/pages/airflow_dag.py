"""What the pages show of a DAG and its newest run, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

GOES_ON = frozenset(("queued", "running"))


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

"""Before each request: does Airflow still want this task to run, and did nobody ask to stop?"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk.types import RuntimeTaskInstanceProtocol

    from topicops.flow.runs.run import EnvironmentRun

log = logging.getLogger(__name__)

ASKED_EVERY_S = 0.05
"""Airflow's answer takes some milliseconds; the loops of a wait ask many times in a second."""


@dataclass(slots=True)
class StopAsked:
    """True from the first time on that a stop was asked for, or that nobody can say.

    Args:
        states: Gives Airflow's word for this run, and for this task.
    """

    run: EnvironmentRun
    states: Callable[[], tuple[str | None, str | None]]
    reason: str = ""
    by_a_person: bool = False
    """Then no other try of the task may go on."""
    _asked_at: float = float("-inf")

    def __call__(self) -> bool:
        if not self.reason and time.monotonic() - self._asked_at >= ASKED_EVERY_S:
            self.reason = self._found()
            self._asked_at = time.monotonic()
            if self.reason:
                log.warning("nothing more is sent: %s", self.reason)
        return bool(self.reason)

    def _found(self) -> str:
        from topicops.flow.runs.memory import stop_reason

        if reason := stop_reason(self.run):
            self.by_a_person = True
            return reason
        try:
            of_run, of_task = self.states()
        except Exception as error:  # noqa: BLE001  whatever it is, nobody knows whether the run was stopped
            return f"Airflow does not say whether this run still runs: {type(error).__name__}: {error}"
        if of_run != "running":
            return f"the run is {of_run or 'gone'} and no longer running in Airflow"
        return "" if of_task == "running" else f"the task is {of_task or 'gone'} and no longer running in Airflow"


def _word(state: object) -> str | None:
    """Airflow gives a text or a member of an enum."""
    return None if state is None else str(getattr(state, "value", state))


def stop_asked(run: EnvironmentRun, ti: RuntimeTaskInstanceProtocol) -> StopAsked:
    """For the task that runs here."""

    def states() -> tuple[str | None, str | None]:
        of_tasks = ti.get_task_states(dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id])
        of_task = of_tasks.get(ti.run_id, {}).get(ti.task_id)
        return _word(ti.get_dagrun_state(dag_id=ti.dag_id, run_id=ti.run_id)), _word(of_task)

    return StopAsked(run, states)

"""What tells people of runs. Deleting a feature deletes its lines here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import topicops.features.notify.on_airflow

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk import BaseNotifier, Context

    from topicops.flow.runs.run import EnvironmentRun

AnswerKind = Literal["held", "approved", "rejected", "withdrawn"]


class Teller(Protocol):
    """Tells what happened; raises no error. Its functions are described where they are defined."""

    def tell_of_run(
        self,
        run: EnvironmentRun,
        notifiers: Sequence[BaseNotifier],
        context: Context,
        *,
        mode: str,
        failed_tasks: Sequence[str],
        is_whole: bool,
        approval: str,
    ) -> None: ...

    def tell_of_drift(
        self, run: EnvironmentRun, notifiers: Sequence[BaseNotifier], context: Context, *, is_whole: bool
    ) -> None: ...

    def tell_of_answer(
        self,
        run: EnvironmentRun,
        notifiers: Sequence[BaseNotifier],
        context: Context,
        *,
        kind: AnswerKind,
        verdict: Callable[[], str],
        changes: int,
        link: str = "",
    ) -> None: ...

    def tell_of_end(
        self, run: EnvironmentRun, reason: str, notifiers: Sequence[BaseNotifier], context: Context
    ) -> None: ...

    def tell_setting_of_end(self, run: EnvironmentRun, reason: str) -> Callable[[], bool] | None: ...

    def tell_setting_of_files(self, run: EnvironmentRun, fetched_at: datetime | None) -> None: ...

    def has_setting(self) -> bool: ...


TELLERS: tuple[Teller, ...] = (
    topicops.features.notify.on_airflow,
)  # fmt: skip

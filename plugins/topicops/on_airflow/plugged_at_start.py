"""What features add to each process of Airflow; light to import. Deleting a feature's folder deletes its lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import topicops.features.moves.on_airflow
import topicops.features.notify.on_airflow
import topicops.features.quality.on_airflow
import topicops.features.topic_pages.on_airflow
from topicops.flow.runs.run import Place
from topicops.on_airflow.names import QUALITY_ROUTE
from topicops.steps.reporting.markup import Html, together

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk import DAG, BaseNotifier, Context
    from fastapi import FastAPI

    from topicops.flow.runs.run import EnvironmentRun
    from topicops.on_airflow.names import RunOf
    from topicops.on_airflow.site import Site

ToldKind = Literal["held", "approved", "rejected", "withdrawn", "applied"]
"""What is told by itself: a question, an answer, or moves that ended."""


class Teller(Protocol):
    """Sends events to people; raises no error. Its functions are described where they are defined."""

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
    def tell_of_one(
        self,
        run: EnvironmentRun,
        notifiers: Sequence[BaseNotifier],
        context: Context,
        *,
        kind: ToldKind,
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


@dataclass(frozen=True, slots=True)
class Tab:
    """A page of a run, beside its plan."""

    name: str
    """Last word of its address."""
    route: str
    """Word by which Airflow knows the tab."""
    page: Callable[[Place, RunOf], str]
    """Function that takes the home and the run, and gives the whole document."""


class TopicPages(Protocol):
    """Pages of the topics of an environment. Its functions are described where they are defined."""

    @property
    def VIEW(self) -> Mapping[str, str]:  # noqa: N802  a constant of a module
        """What Airflow shows of them, as a plugin's ``external_views`` have it."""

    def add_routes(self, app: FastAPI, home: Callable[[], Place]) -> None: ...
    def topic_link(self, name: str, part: str = "") -> Html: ...


class MovingPages(Protocol):
    """What pages show of replicas that move; None where there is nothing to show. Damaged records are shown as such."""

    def moves_of_environment(self, home: Place, environment: str) -> Html | None: ...
    def moves_of_topic(self, home: Place, environment: str, topic: str) -> Html | None: ...
    def moves_of_runs(self, home: Place, environment: str, runs: Collection[str]) -> Html | None: ...
    def topics_that_move(self, home: Place, environment: str) -> Collection[str]: ...


TELLERS: tuple[Teller, ...] = (
    topicops.features.notify.on_airflow,
)  # fmt: skip
MORE_DAGS: tuple[Callable[[Site], DAG], ...] = (
    topicops.features.moves.on_airflow.moves_dag,
)  # fmt: skip
"""Functions that give one more DAG of an environment. They raise ``UsageError``."""
TABS: tuple[Tab, ...] = (
    Tab("quality", QUALITY_ROUTE, topicops.features.quality.on_airflow.page_of),
)  # fmt: skip
MOVING: tuple[MovingPages, ...] = (
    topicops.features.moves.on_airflow,
)  # fmt: skip
TOPIC_PAGES: tuple[TopicPages, ...] = (
    topicops.features.topic_pages.on_airflow,
)  # fmt: skip
"""For links, the first is used."""


def topic_link(name: str, part: str = "") -> Html:
    """Lead to the page of a topic, where there is one."""
    return TOPIC_PAGES[0].topic_link(name, part) if TOPIC_PAGES else together(name)

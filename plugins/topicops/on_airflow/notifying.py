"""Tell of events: in the log of the task, by Airflow's metrics, and to each notifier of the environment.

Notifiers are Airflow's own. They are those of ``environment_dags(notifiers=…)``, and those that ``TOPICOPS_NOTIFY``
names as ``module:factory``. Each finds the event in the context as ``topicops_event``, also in its templates.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk import Context
from airflow.sdk.configuration import conf
from airflow.sdk.observability import stats

from topicops.model.errors import TopicopsError, UsageError
from topicops.model.runs.events import TROUBLE
from topicops.on_airflow.links import tab_address
from topicops.on_airflow.routes import PLAN_ROUTE, QUALITY_ROUTE

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk import BaseNotifier

    from topicops.flow.runs.run import Run
    from topicops.flow.telling import Telling
    from topicops.model.runs.events import Event

log = logging.getLogger(__name__)

EVENT = "topicops_event"
"""The event's name in the context of a notifier."""
SETTING = "TOPICOPS_NOTIFY"
THE_LOG = "log"
"""The receiver that is always there."""


def tell(
    telling: Callable[[], Telling], notifiers: Sequence[BaseNotifier], context: Context, *, link: str = ""
) -> None:
    """Tell the log, these notifiers and those of the setting what each does not know yet.

    A problem is logged, and fails no task. What was told is a memory against repeats, and no condition: where it cannot
    be read or written, all is told, perhaps again.

    Args:
        link: Where the events lead; empty: to the run's plan, or to its quality rules.
    """
    try:
        found = telling()
    except TopicopsError as error:
        log.error("nobody is told of this run: %s", error)  # noqa: TRY400  a sentence for people
        return
    found.tell(THE_LOG, _to_log)
    _tell_each(found, (*_receivers(notifiers), *_those_of_setting()), context, link)


def tell_of_end(run: Run, reason: str, notifiers: Sequence[BaseNotifier], context: Context) -> None:
    """Tell the notifiers of a DAG file of a run that failed; nothing if its report has told of it.

    Args:
        reason: Airflow's, in a few words.
    """
    from topicops.flow.telling import telling_of_failure

    _tell_each(telling_of_failure(run, reason), _receivers(notifiers), context)


def tell_setting_of_end(run: Run, reason: str) -> Telling:
    """As ``tell_of_end``, the log and the notifiers of the setting: for who has neither DAG file nor task."""
    from topicops.flow.telling import telling_of_failure

    found = telling_of_failure(run, reason)
    _tell_setting(found)
    return found


def tell_setting_of_files(run: Run, fetched_at: datetime | None) -> None:
    """Tell the log and the notifiers of the setting that Airflow does not fetch the files, and when it does again.

    Args:
        fetched_at: When it did last, if that is too long ago; None: it does.
    """
    from topicops.flow.telling import telling_of_files

    _tell_setting(telling_of_files(run, fetched_at))


def _tell_setting(found: Telling) -> None:
    found.tell(THE_LOG, _to_log)
    _tell_each(found, _those_of_setting(), cast("Context", {}))


def _tell_each(found: Telling, receivers: Iterable[tuple[str, BaseNotifier]], context: Context, link: str = "") -> None:
    for name, notifier in receivers:
        found.tell(name, partial(_notify, notifier, context, link))
    for problem in found.problems:
        log.error("what was told cannot be remembered, so it may be told again: %s", problem)


def _those_of_setting() -> Iterator[tuple[str, BaseNotifier]]:
    """With names of their own: a notifier of a DAG file, of the same class, is another receiver."""
    try:
        made = notifiers_of_setting()
    except UsageError as error:
        log.error("nobody is told: %s", error)  # noqa: TRY400  a sentence for people
        return
    yield from ((f"{SETTING} {name}", notifier) for name, notifier in _receivers(made))


def notifiers_of_setting() -> Sequence[BaseNotifier]:
    """What ``TOPICOPS_NOTIFY`` makes. Raises ``UsageError`` when it makes no notifier."""
    written = os.environ.get(SETTING, "")
    if not written:
        return ()
    module, _, factory = written.partition(":")
    try:
        made = getattr(import_module(module), factory)()
    except Exception as error:  # the code is not ours
        raise UsageError(
            f"{SETTING} is {written!r}, which makes no notifier: {type(error).__name__}: {error}"
        ) from error
    return tuple(made) if isinstance(made, Sequence) else (made,)


def _receivers(notifiers: Sequence[BaseNotifier]) -> Iterator[tuple[str, BaseNotifier]]:
    """Each with a name that stays: its class, and its place among those of that class."""
    seen: dict[str, int] = {}
    for notifier in notifiers:
        name = f"{type(notifier).__module__}.{type(notifier).__qualname__}"
        seen[name] = seen.get(name, 0) + 1
        yield f"{name} {seen[name]}", notifier


def _to_log(event: Event) -> bool:
    log.log(logging.WARNING if event.kind in TROUBLE else logging.INFO, "%s: %s", event.kind, event.verdict)
    stats.incr(f"topicops.{event.environment}.{event.kind}")
    return True


def _notify(notifier: BaseNotifier, context: Context, link: str, event: Event) -> bool:
    """Whether the notifier took it. A copy of the notifier is used, because rendering fills its fields."""
    mine, fields = copy(notifier), {**asdict(event), "link": link or _page_of(event)}
    with_event = cast("Any", {**context, EVENT: fields})
    try:
        mine.render_template_fields(with_event)
        try:
            mine.notify(with_event)
        except NotImplementedError:  # it can be awaited only
            asyncio.run(mine.async_notify(with_event))
    except Exception as error:  # noqa: BLE001  the code is not ours, and a message is no reason to fail a run
        log.error("%s could not tell of %s: %s: %s", type(notifier).__name__, event.kind, type(error).__name__, error)  # noqa: TRY400
        return False
    return True


def _page_of(event: Event) -> str:
    dag_id, _, run_id = event.run.partition("/")
    return tab_address(dag_id, run_id, QUALITY_ROUTE if event.kind == "unhealthy" else PLAN_ROUTE)


def metrics_are_on() -> bool:
    """Whether Airflow sends metrics anywhere."""
    ways = ("statsd_on", "statsd_datadog_enabled", "otel_on")
    return any(conf.getboolean("metrics", way, fallback=False) for way in ways)


def begin_metrics() -> None:
    """Outside a task Airflow has not begun these metrics: in the DAG processor, the scheduler and the API server."""
    from airflow.sdk.observability.metrics import stats_utils

    stats.initialize(
        factory=stats_utils.get_stats_factory(),
        export_legacy_names=conf.getboolean("metrics", "legacy_names_on", fallback=True),
    )


def count(environment: str, counts: Mapping[str, float]) -> None:
    """Gauges ``topicops.<environment>.<name>``, by Airflow's own metrics: StatsD or OpenTelemetry."""
    for name, value in counts.items():
        stats.gauge(f"topicops.{environment}.{name}", value)

"""Sends events: to the log of the task, to Airflow's metrics, and to each notifier of the environment.

Notifiers are Airflow's own. They are those of ``environment_dags(notifiers=…)``, and those that ``TOPICOPS_NOTIFY``
names as ``module:factory``. Each finds the event in the context as ``topicops_event``, also in its templates.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from topicops.features.notify.events import TROUBLE
from topicops.model.errors import TopicopsError, UsageError
from topicops.on_airflow import airflow_inside
from topicops.on_airflow.names import PLAN_ROUTE, QUALITY_ROUTE, tab_address

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk import BaseNotifier, Context

    from topicops.features.notify.events import Event
    from topicops.features.notify.told import Telling
    from topicops.flow.runs.run import EnvironmentRun
    from topicops.on_airflow.plugged_at_start import ToldKind

log = logging.getLogger(__name__)

SETTING = "TOPICOPS_NOTIFY"
THE_LOG = "log"
"""The receiver that is always there."""


def tell_of_run(
    run: EnvironmentRun,
    notifiers: Sequence[BaseNotifier],
    context: Context,
    *,
    mode: str,
    failed_tasks: Sequence[str],
    is_whole: bool,
    approval: str,
) -> None:
    from topicops.features.notify.told import note_end_told, telling_of_run

    telling = partial(telling_of_run, run, mode=mode, failed_tasks=failed_tasks, is_whole=is_whole, approval=approval)
    tell(telling, notifiers, context)
    note_end_told(run)


def tell_of_drift(run: EnvironmentRun, notifiers: Sequence[BaseNotifier], context: Context, *, is_whole: bool) -> None:
    from topicops.features.notify.told import telling_of_drift

    tell(partial(telling_of_drift, run, is_whole=is_whole), notifiers, context)


def tell_of_one(
    run: EnvironmentRun,
    notifiers: Sequence[BaseNotifier],
    context: Context,
    *,
    kind: ToldKind,
    verdict: Callable[[], str],
    changes: int,
    link: str = "",
) -> None:
    """Tell of a question, of its answer, or of moves that ended; without a link the event leads to the run's plan."""
    from topicops.features.notify.told import telling_of_one

    tell(lambda: telling_of_one(run, kind=kind, verdict=verdict(), changes=changes), notifiers, context, link=link)


def tell(
    telling: Callable[[], Telling], notifiers: Sequence[BaseNotifier], context: Context, *, link: str = ""
) -> None:
    """Tell the log, these notifiers and those of the setting what each does not know yet.

    A problem is logged, and fails no task. What was told is a memory against repeats, and no condition: where it cannot
    be read or written, all is told, perhaps again. Without a link the events lead to the run's plan, or quality rules.
    """
    try:
        found = telling()
    except TopicopsError as error:
        log.error("nobody is told of this run: %s", error)  # noqa: TRY400  a sentence for people
        return
    found.tell(THE_LOG, _to_log)
    _tell_each(found, (*_receivers(notifiers), *_those_of_setting()), context, link)


def tell_of_end(run: EnvironmentRun, reason: str, notifiers: Sequence[BaseNotifier], context: Context) -> None:
    """Tell the notifiers of a DAG file of a run that failed, unless its report has told of it."""
    from topicops.features.notify.told import telling_of_failure

    _tell_each(telling_of_failure(run, reason), _receivers(notifiers), context)


def tell_setting_of_end(run: EnvironmentRun, reason: str) -> Callable[[], bool] | None:
    """As ``tell_of_end``, the log and the notifiers of the setting: for who has neither DAG file nor task.

    Gives what writes down later that they were told, and returns whether it could; None means that it is written.
    """
    from topicops.features.notify.told import telling_of_failure

    found = telling_of_failure(run, reason)
    _tell_setting(found)
    return found.remember if found.problems else None


def tell_setting_of_files(run: EnvironmentRun, fetched_at: datetime | None) -> None:
    """Tell the log and the notifiers of the setting that Airflow does not fetch the files, and when it does again."""
    from topicops.features.notify.told import telling_of_files

    _tell_setting(telling_of_files(run, fetched_at))


def has_setting() -> bool:
    return bool(os.environ.get(SETTING))


def _tell_setting(found: Telling) -> None:
    found.tell(THE_LOG, _to_log)
    _tell_each(found, _those_of_setting(), cast("Context", {}))


def _tell_each(found: Telling, receivers: Iterable[tuple[str, BaseNotifier]], context: Context, link: str = "") -> None:
    for name, notifier in receivers:
        found.tell(name, partial(_notify, notifier, context, link))
    for problem in found.problems:
        log.error("what was told cannot be remembered, so it may be told again: %s", problem)


def _those_of_setting() -> Iterator[tuple[str, BaseNotifier]]:
    """Give them their own names: a notifier of a DAG file, of the same class, is another receiver."""
    try:
        made = notifiers_of_setting()
    except UsageError as error:
        log.error("nobody is told: %s", error)  # noqa: TRY400  a sentence for people
        return
    yield from ((f"{SETTING} {name}", notifier) for name, notifier in _receivers(made))


def notifiers_of_setting() -> Sequence[BaseNotifier]:
    """Make what ``TOPICOPS_NOTIFY`` names. Raises ``UsageError`` when it makes no notifier."""
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
    """Yield each with a name that stays: its class, and its place among those of that class."""
    seen = Counter[str]()
    for notifier in notifiers:
        name = f"{type(notifier).__module__}.{type(notifier).__qualname__}"
        seen[name] += 1
        yield f"{name} {seen[name]}", notifier


def _to_log(event: Event) -> bool:
    log.log(logging.WARNING if event.kind in TROUBLE else logging.INFO, "%s: %s", event.kind, event.verdict)
    airflow_inside.Stats.incr(f"topicops.{event.environment}.{event.kind}")
    return True


def _notify(notifier: BaseNotifier, context: Context, link: str, event: Event) -> bool:
    """Say whether the notifier took it. A copy of it is used, because rendering fills its fields."""
    dag_id, _, run_id = event.run.partition("/")
    page = tab_address(dag_id, run_id, QUALITY_ROUTE if event.kind == "unhealthy" else PLAN_ROUTE)
    mine = copy(notifier)
    with_event = cast("Any", {**context, "topicops_event": {**asdict(event), "link": link or page}})
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

"""One environment's DAGs: whose they are, when they run, in which mode, and what Airflow gives each task.

Each option is the first that is there: the argument of ``environment_dags``, ``spec.airflow`` of the environment's
file, the setting ``TOPICOPS_SCHEDULE``, ``TOPICOPS_DRIFT_SCHEDULE`` or ``TOPICOPS_MODE``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.model.errors import (
    ConnectionSecurityError,
    FormatVersionError,
    MovedFilesError,
    SpecError,
    SpecFileError,
    UsageError,
    WrongTargetError,
)
from topicops.model.printable import printable
from topicops.model.specs.schedules import PROBLEMS, cron_of
from topicops.model.specs.topic_config import read_duration_ms

if TYPE_CHECKING:
    from airflow.sdk import BaseNotifier

    from topicops.on_airflow.plugged import Tools

log = logging.getLogger(__name__)

MODES = ("plan", "apply")
BROKEN = "broken"
"""Among the words of a file: the file, or its schedule, cannot be understood."""
FAIL_ON = frozenset(("unhealthy",))
LAST_RESORT = "every 1h"
"""Schedule of a pipeline whose file has no valid one: so ``validate`` runs, fails, and sends an event."""
SCHEDULE, DRIFT_SCHEDULE, MODE = "TOPICOPS_SCHEDULE", "TOPICOPS_DRIFT_SCHEDULE", "TOPICOPS_MODE"
NO_RETRY = (ConnectionSecurityError, FormatVersionError, MovedFilesError, SpecError, UsageError, WrongTargetError)
"""Errors that a second try cannot fix."""
SKIP = "skip"
"""Key in what a step returns: why each of these tasks is not needed, by task id."""
QUIET = "quiet"
"""Key in what a step returns: why none of the steps below it is needed."""
SOON = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """None and empty: as the environment's file says, or else the settings."""

    schedule: object = None
    """Schedule of the pipeline: a form of ``model.specs.schedules``, or any other that Airflow takes."""
    drift_schedule: object = None
    mode: str | None = None
    """Mode of the pipeline: ``plan`` or ``apply``."""
    default_args: Mapping[str, object] = field(default_factory=dict)
    """Arguments of each task, above our own."""
    tags: Sequence[str] = ()
    notifiers: Sequence[BaseNotifier] = ()
    """Notifiers that get the events, besides those of the setting ``TOPICOPS_NOTIFY``."""
    pool: str | None = None
    fail_on: frozenset[str] = frozenset()
    """States that make a complete run red: ``unhealthy``."""
    owner: str = ""
    """Owner of each task; empty means ``topicops``."""
    owner_link: str = ""
    access_control: Mapping[str, Mapping[str, Sequence[str]]] | None = None
    """Rights on the DAGs by role, as Airflow's ``access_control``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The environment and folders that its DAGs share."""

    environment: str
    topics: Path
    options: Options = field(default_factory=Options)
    tools: Tools | None = None
    """Steps and features that its tasks use; None means those that are installed."""

    @property
    def pipeline_id(self) -> str:
        return f"topic_pipeline_{self.environment}"

    @property
    def approval_id(self) -> str:
        return f"topic_approval_{self.environment}"


def resolved(options: Options, environment: str, file: Path) -> Options:
    """Give the same options with schedules as Airflow takes them, where None is started by hand, and with a mode.

    Raises ``UsageError`` for an argument or a setting that is no schedule, no mode or no word of ``FAIL_ON``.
    """
    if unknown := sorted(set(options.fail_on) - FAIL_ON):
        raise UsageError(f"fail_on has {unknown[0]!r}; it takes {', '.join(sorted(FAIL_ON))}")
    written = read_airflow_part(file)
    last_resort = LAST_RESORT if written.get(BROKEN) and not os.environ.get(SCHEDULE) else None
    mode = options.mode or written.get("mode")
    found_mode = mode or os.environ.get(MODE) or MODES[0]
    if found_mode not in MODES:
        raise UsageError(f"{'mode' if mode else MODE} is {found_mode!r}; it takes {' or '.join(MODES)}")
    return replace(
        options,
        schedule=schedule_of(SCHEDULE, environment, options.schedule or written.get("schedule") or last_resort),
        drift_schedule=schedule_of(DRIFT_SCHEDULE, environment, options.drift_schedule or written.get("driftSchedule")),
        mode=found_mode,
        fail_on=options.fail_on | (FAIL_ON & set(written.get("failOn", "").split(","))),
        owner=written.get("owner", ""),
        owner_link=written.get("ownerLink", ""),
    )


def read_airflow_part(file: Path) -> Mapping[str, str]:
    """Return the words of ``spec.airflow`` that are in order, and ``BROKEN`` if one is not.

    ``validate`` reports the others, and a file that cannot be read; with such a part nothing is sent.
    """
    from topicops.flow.spec_files import airflow_part  # a DAG file with options of its own needs none

    try:
        part = airflow_part(file)
    except SpecFileError as error:
        log.warning("spec.airflow cannot be read, so these DAGs only plan: %s", printable(str(error)))
        return {"mode": "plan", BROKEN: "yes"}
    good = {name: words for name, words in part.items() if name in PROBLEMS and PROBLEMS[name](words) is None}
    return {
        **good,
        **({"mode": part["mode"] if part["mode"] in MODES else "plan"} if "mode" in part else {}),
        **({BROKEN: "yes"} if "schedule" in part and "schedule" not in good else {}),
        **({"failOn": part["failOn"]} if "failOn" in part else {}),
    }


def schedule_of(setting: str, environment: str, wanted: object = None) -> object:
    """Give Airflow's form of the wanted schedule, or else of that in the setting. Raises ``UsageError``."""
    found = wanted or os.environ.get(setting) or None
    if not isinstance(found, str):
        return found
    try:
        return cron_of(found, environment)
    except ValueError as error:
        raise UsageError(f"{f'schedule of {environment}' if wanted else setting}: {error}") from error


def duration_of(name: str, default: str) -> timedelta:
    """Read the environment variable of this name. Raises ``UsageError`` for what is no duration."""
    text = os.environ.get(name) or default
    try:
        return timedelta(milliseconds=read_duration_ms(text))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{name} is {text!r}: {error}; write 30m, 8h or 2d") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a question waits, and what happens meanwhile; zero means never."""

    answer_within: timedelta
    check_every: timedelta
    remind_after: timedelta

    def is_over(self, asked_at: datetime, at: datetime) -> bool:
        return at >= asked_at + self.answer_within

    def reminds(self, asked_at: datetime, at: datetime) -> bool:
        return bool(self.remind_after) and at >= asked_at + self.remind_after

    def next_look(self, asked_at: datetime, at: datetime) -> timedelta:
        """Say how long to wait until somebody must look at the question again."""
        waited = at - asked_at
        times = [self.answer_within - waited]
        times += [self.check_every] if self.check_every else []
        times += [self.remind_after - waited] if self.remind_after > waited else []
        return max(SOON, min(times))


def patience() -> Patience:
    """Read the settings of a question. Raises ``UsageError``."""
    within = duration_of("TOPICOPS_ANSWER_WITHIN", "8h")
    if not within:
        raise UsageError(
            f"TOPICOPS_ANSWER_WITHIN is {os.environ['TOPICOPS_ANSWER_WITHIN']!r}: nobody can answer in no time; write "
            "30m, 8h or 2d"
        )
    return Patience(
        answer_within=within,
        check_every=duration_of("TOPICOPS_CHECK_QUESTION_EVERY", "5m"),
        remind_after=duration_of("TOPICOPS_REMIND_AFTER", "1h"),
    )

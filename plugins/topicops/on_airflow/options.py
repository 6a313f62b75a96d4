"""What one environment's DAGs have of their own: when they run, in which mode, and what Airflow gives each task.

Each value is the first that is there: the argument of ``environment_dags``, ``spec.airflow`` of the environment's file,
the setting ``TOPICOPS_SCHEDULE``, ``TOPICOPS_DRIFT_SCHEDULE`` or ``TOPICOPS_MODE``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.model.errors import SpecFileError, UsageError
from topicops.model.printable import printable
from topicops.model.specs.schedules import cron_of, owner_link_problem, owner_problem, schedule_problem

if TYPE_CHECKING:
    from airflow.sdk import BaseNotifier

log = logging.getLogger(__name__)

MODES = ("plan", "apply")
BROKEN = "broken"
"""Among the words of a file: the file, or its schedule, cannot be understood."""
_OWNER_RULES = {"owner": owner_problem, "ownerLink": owner_link_problem}
FAIL_ON = frozenset(("unhealthy",))
LAST_RESORT = "every 1h"
"""Of a pipeline whose file cannot say when it runs: so ``validate`` runs, fails, and is told."""
SCHEDULE, DRIFT_SCHEDULE, MODE = "TOPICOPS_SCHEDULE", "TOPICOPS_DRIFT_SCHEDULE", "TOPICOPS_MODE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """None and empty: as the environment's file says, or else the settings."""

    schedule: object = None
    """Of the pipeline: a form of ``model.specs.schedules``, or any other schedule that Airflow takes."""
    drift_schedule: object = None
    mode: str | None = None
    """``plan`` or ``apply``."""
    default_args: Mapping[str, object] = field(default_factory=dict)
    """Of each task, above our own."""
    tags: Sequence[str] = ()
    """Added to our own."""
    notifiers: Sequence[BaseNotifier] = ()
    """Each is told of what happens; those of the setting ``TOPICOPS_NOTIFY`` too."""
    pool: str | None = None
    """Of each task."""
    fail_on: frozenset[str] = frozenset()
    """What makes a run red that did all it should: ``unhealthy``."""
    owner: str = ""
    """Of each task; empty: ``topicops``."""
    owner_link: str = ""
    access_control: Mapping[str, Mapping[str, Sequence[str]]] | None = None
    """Role to rights on the DAGs, as Airflow's ``access_control``."""


def resolved(options: Options, environment: str, file: Path) -> Options:
    """The same options with schedules as Airflow takes them, where None is started by hand, and with a mode.

    Args:
        file: Of the environment; only its ``spec.airflow`` is read.

    Raises:
        UsageError: An argument or a setting is no schedule or no mode.
    """
    written = read_airflow_part(file)
    last_resort = LAST_RESORT if written.get(BROKEN) and not os.environ.get(SCHEDULE) else None
    return replace(
        options,
        schedule=_schedule(options.schedule or written.get("schedule") or last_resort, SCHEDULE, environment),
        drift_schedule=_schedule(options.drift_schedule or written.get("driftSchedule"), DRIFT_SCHEDULE, environment),
        mode=_mode(options.mode or written.get("mode")),
        fail_on=options.fail_on | (FAIL_ON & set(written.get("failOn", "").split(","))),
        owner=written.get("owner", ""),
        owner_link=written.get("ownerLink", ""),
    )


def schedule_of_setting(name: str, environment: str) -> object:
    """What Airflow is given for the schedule in this variable. Raises ``UsageError``."""
    return _schedule(None, name, environment)


def read_airflow_part(file: Path) -> Mapping[str, str]:
    """Return the words of ``spec.airflow`` that are in order, and ``BROKEN`` if one is not.

    ``validate`` reports the others, and a file that cannot be read; with such a part nothing is sent.
    """
    from topicops.flow.spec_files import airflow_part

    try:
        part = airflow_part(file)
    except SpecFileError as error:
        log.warning("spec.airflow cannot be read, so these DAGs only plan: %s", printable(str(error)))
        return {"mode": "plan", BROKEN: "yes"}
    schedules = {name: part[name] for name in ("schedule", "driftSchedule") if _is_schedule(part.get(name))}
    mode, broken = part.get("mode"), "schedule" in part and "schedule" not in schedules
    return {
        **schedules,
        **({} if mode is None else {"mode": mode if mode in MODES else "plan"}),
        **({BROKEN: "yes"} if broken else {}),
        **({"failOn": part["failOn"]} if "failOn" in part else {}),
        **{name: part[name] for name, rule in _OWNER_RULES.items() if name in part and not rule(part[name])},
    }


def known_fail_on(words: Collection[str]) -> frozenset[str]:
    """Raise ``UsageError`` for a word that is none of ``FAIL_ON``."""
    if unknown := sorted(set(words) - FAIL_ON):
        raise UsageError(f"fail_on has {unknown[0]!r}; it takes {', '.join(sorted(FAIL_ON))}")
    return frozenset(words)


def _is_schedule(written: str | None) -> bool:
    return written is not None and schedule_problem(written) is None


def _schedule(wanted: object, setting: str, environment: str) -> object:
    found = wanted or os.environ.get(setting) or None
    if not isinstance(found, str):
        return found
    try:
        return cron_of(found, environment)
    except ValueError as error:
        raise UsageError(f"{f'schedule of {environment}' if wanted else setting}: {error}") from error


def _mode(wanted: str | None) -> str:
    mode = wanted or os.environ.get(MODE) or MODES[0]
    if mode not in MODES:
        raise UsageError(f"{'mode' if wanted else MODE} is {mode!r}; it takes {' or '.join(MODES)}")
    return mode

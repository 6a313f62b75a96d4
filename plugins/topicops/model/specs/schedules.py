"""Schedule and owner of an environment's DAGs; light, because Airflow parses DAG files all the time.

A schedule is one of Airflow's words, a cron of five fields, ``every 5m``, or ``none``. ``every 5m`` starts at an offset
that comes from the environment's name, so that twenty environments do not all start in the same minute.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence

AIRFLOW_WORDS = ("@once", "@continuous", "@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
NONE = "none"
"""Started by hand, also where a setting has a schedule for all."""
FORMS = "write `every 5m`, `every 6h` or `every 1d`, a cron of five fields, a word such as @hourly, or none"

_EVERY = re.compile(r"every ([1-9][0-9]{0,3})([mhd])")
AN_HOUR, A_DAY = 60, 1440
"""Minutes in each."""
_MINUTES: Mapping[str, int] = {"m": 1, "h": AN_HOUR, "d": A_DAY}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Sequence[tuple[str, int, int, Sequence[str]]] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _WEEKDAYS),
)
"""Name, lowest and highest number, and words for the numbers from the lowest."""
_PART = re.compile(r"(?P<first>\*|\w+)(-(?P<last>\w+))?(/(?P<step>[1-9][0-9]?))?", re.ASCII)


def schedule_problem(written: str) -> str | None:
    """Return what is wrong with it; None means that it is a schedule."""
    if written == NONE or written in AIRFLOW_WORDS:
        return None
    if every := _EVERY.fullmatch(written):
        minutes = int(every[1]) * _MINUTES[every[2]]
        # A cron can count only what divides the hour or the day.
        is_countable = AN_HOUR % minutes == 0 or (minutes % AN_HOUR == 0 and A_DAY % minutes == 0)
        return None if is_countable else "every: the time must divide an hour or a day without rest"
    fields = written.split()
    if len(fields) != len(_FIELDS):
        return f"{written!r} is no schedule"
    return next(filter(None, map(_field_problem, fields, *zip(*_FIELDS, strict=True))), None)


def cron_of(written: str, environment: str) -> str | None:
    """Return what Airflow is given: None is no schedule.

    Args:
        written: In one of the forms above.
        environment: Its name decides when ``every`` begins.

    Raises ``ValueError``: It is no schedule.
    """
    if problem := schedule_problem(written):
        raise ValueError(f"{problem}; {FORMS}")
    if written == NONE:
        return None
    every = _EVERY.fullmatch(written)
    return _spread(int(every[1]) * _MINUTES[every[2]], environment) if every else written


def _spread(minutes: int, environment: str) -> str:
    """Return a cron that fires every so many minutes, at an offset of this environment's own."""
    offset = int.from_bytes(hashlib.sha256(environment.encode()).digest()[:8]) % minutes
    hour, minute = divmod(offset, AN_HOUR)
    if minutes == 1:
        return "* * * * *"
    if minutes < AN_HOUR:
        return f"{minute}-59/{minutes} * * * *"
    if minutes == AN_HOUR:
        return f"{minute} * * * *"
    return f"{minute} {hour} * * *" if minutes == A_DAY else f"{minute} {hour}-23/{minutes // AN_HOUR} * * *"


def _field_problem(field: str, name: str, lowest: int, highest: int, words: Sequence[str]) -> str | None:
    for part in field.split(","):
        found = _PART.fullmatch(part)
        numbers = [_number(found[key], lowest, words) for key in ("first", "last") if found[key]] if found else [None]
        is_known = all(number is not None and lowest <= number <= highest for number in numbers)
        if not is_known or numbers != sorted(numbers, key=lambda number: number or 0):
            return f"{field!r} is no {name} of a cron"
    return None


def _number(text: str, lowest: int, words: Sequence[str]) -> int | None:
    if text == "*":
        return lowest
    if text.isdecimal():
        return int(text)
    return words.index(text.lower()) + lowest if text.lower() in words else None


LONGEST = 100
_LINK = re.compile(r"https?://[^\s/?#]\S*|mailto:[^\s?#]\S*")


def owner_problem(written: str) -> str | None:
    """Return what is wrong with a name, or None. Airflow joins the owners of a DAG's tasks with commas."""
    if "," not in written and written.isprintable() and written == written.strip() and 0 < len(written) <= LONGEST:
        return None
    return f"{written[:LONGEST]!r} is no owner: write one name without a comma, of at most {LONGEST} characters"


def owner_link_problem(written: str) -> str | None:
    """Return what is wrong with a link; None means that Airflow takes it."""
    return None if _LINK.fullmatch(written) else f"{written[:LONGEST]!r} is no link: write https://… or mailto:…"


PROBLEMS: Mapping[str, Callable[[str], str | None]] = {
    "schedule": schedule_problem,
    "driftSchedule": schedule_problem,
    "owner": owner_problem,
    "ownerLink": owner_link_problem,
}
"""Functions that say what is wrong with a text, by its field of ``spec.airflow``; None means nothing."""

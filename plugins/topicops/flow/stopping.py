"""Stop runs from outside: whoever sends changes asks before each request whether a stop was asked for.

A stop is a new word in a file of the environment. A run notes the word when it begins; another word later means stop.
So no clock is compared, and a run that begins after the stop is not touched.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path

from topicops.edges.home.memories import STOPS
from topicops.edges.home.open_journals import open_journals_folder, unsettled
from topicops.flow.runs.run import EnvironmentRun, now
from topicops.model.errors import ArtifactError
from topicops.model.runs.memories import Stop

NOTED_FILE = "stop-noted.json"


NO_STOP = Stop(word="", by="", at=datetime.min.replace(tzinfo=UTC))


def ask_to_stop(home: Path, environment: str, *, by: str) -> tuple[str, ...]:
    """Ask each run of the environment that has begun to send nothing more; returns those that send now, or ended so.

    Raises:
        ArtifactError: The home cannot be written, so no run hears of it.
    """
    STOPS.of(home, environment).write(Stop(word=secrets.token_hex(8), by=by, at=now()))
    return tuple(sorted({run for run, _ in unsettled(open_journals_folder(home, environment))}))


def note_begin(run: EnvironmentRun) -> Stop:
    """At the begin of a run: a stop that was asked for before is not for this run."""
    begun = _newest(run)
    run.store.write_value(NOTED_FILE, begun)
    return begun


def stop_reason(run: EnvironmentRun, begun: Stop | None = None) -> str:
    """Who asked this run to stop; empty: nobody. A file that cannot be read is a stop too.

    Args:
        begun: As ``note_begin`` gave it; None means that another task of the run has kept it.
    """
    try:
        noted = begun or (run.store.read_value(NOTED_FILE, Stop) if run.store.has(NOTED_FILE) else NO_STOP)
        newest = _newest(run)
    except ArtifactError as error:
        return f"nobody can say whether a stop was asked for: {error}"
    return "" if newest.word == noted.word else f"{newest.by} asked it to stop at {newest.at:%Y-%m-%d %H:%M:%S} UTC"


def _newest(run: EnvironmentRun) -> Stop:
    return STOPS.of(run.home, run.environment).read() or NO_STOP

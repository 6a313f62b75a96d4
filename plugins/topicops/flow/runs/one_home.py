"""All tasks of a run need one ``TOPICOPS_HOME``: says where the run began, and refuses another folder."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from topicops.edges.home.memories import mark_of, read_mark
from topicops.model.errors import UsageError
from topicops.model.json_errors import JsonError, json_errors

HOME_PAGE = "docs/how-to/run-in-airflow.md#several-workers"


class HomePlace(msgspec.Struct, frozen=True):
    """Where a run began."""

    host: str
    folder: str
    """The path of the home on that host."""
    token: str
    """Of the home; no other folder has it."""


def place_of(home: Path) -> HomePlace:
    """The home on this host, which gets its token here if it has none. Raises ``ArtifactError``."""
    return HomePlace(host=socket.gethostname(), folder=str(home), token=mark_of(home))


def require_same_home(home: Path, began: object) -> None:
    """Raise ``UsageError`` when the run began in another folder.

    Args:
        began: As JSON, the ``HomePlace`` in which it began; None or something else: not known, and nothing is raised.
    """
    try:
        with json_errors():
            first = msgspec.convert(began, HomePlace)
    except JsonError:
        return
    here = socket.gethostname()
    if read_mark(home) != first.token:
        raise UsageError(
            f"this run's folder is on host {first.host}, below {first.folder}; {home} on host {here} is "
            "another TOPICOPS_HOME, or was emptied since: it must be one folder that all workers share, see "
            f"{HOME_PAGE}"
        )

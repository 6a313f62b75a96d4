"""What names our DAGs: their ids, ``topic_<kind>_<environment>``, and the place of their files."""

from __future__ import annotations

import re
from pathlib import Path

_OURS = re.compile(r"topic_(?P<kind>pipeline|approval|drift)_(?P<environment>[\w.-]+)", re.ASCII)


_VERSION = re.compile(r"/(?:tracking_repo|versions/[^/]+)(?=/|$)")
"""Of a git bundle: Airflow parses the newest files in the one, and runs those of a commit in the other."""


def kind_of(dag_id: str) -> str | None:
    """``pipeline``, ``approval`` or ``drift``; None: the DAG is none of ours."""
    return _part(dag_id, "kind")


def environment_of(dag_id: str) -> str | None:
    """None: the DAG is none of ours."""
    return _part(dag_id, "environment")


def place_of(topics: Path) -> str:
    """The folder of topics, the same word for each version of a bundle."""
    return _VERSION.sub("", topics.as_posix(), count=1)


def _part(dag_id: str, name: str) -> str | None:
    match = _OURS.fullmatch(dag_id)
    return match[name] if match else None

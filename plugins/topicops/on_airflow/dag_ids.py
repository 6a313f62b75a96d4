"""The ids of our DAGs: ``topic_<kind>_<environment>``."""

from __future__ import annotations

import re

_OURS = re.compile(r"topic_(?P<kind>pipeline|approval|drift)_(?P<environment>[\w.-]+)", re.ASCII)


def kind_of(dag_id: str) -> str | None:
    """``pipeline``, ``approval`` or ``drift``; None: the DAG is none of ours."""
    return _part(dag_id, "kind")


def environment_of(dag_id: str) -> str | None:
    """None: the DAG is none of ours."""
    return _part(dag_id, "environment")


def _part(dag_id: str, name: str) -> str | None:
    match = _OURS.fullmatch(dag_id)
    return match[name] if match else None

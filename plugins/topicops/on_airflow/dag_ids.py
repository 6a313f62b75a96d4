"""The ids of our DAGs: ``topic_<kind>_<environment>``."""

from __future__ import annotations

import re

_OURS = re.compile(r"topic_(?:pipeline|approval|drift)_(?P<environment>[\w.-]+)", re.ASCII)


def environment_of(dag_id: str) -> str | None:
    """None: the DAG is none of ours."""
    match = _OURS.fullmatch(dag_id)
    return match["environment"] if match else None

"""The DAG that carries moves on, what starts it, and what pages show of moves; light to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from topicops.on_airflow.site import Site

KIND = "moves"
"""Kind of the DAG, as its name has it."""


def moves_dag(site: Site) -> DAG:
    """Return ``topic_moves_<environment>``. Raises ``UsageError`` for a setting that makes no sense."""
    from topicops.features.moves.on_airflow.dag import moves_dag

    return moves_dag(site)

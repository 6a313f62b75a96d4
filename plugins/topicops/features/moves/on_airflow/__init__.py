"""The DAG that carries moves on, what starts it, and what pages show of moves; light to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow.sdk import DAG

    from topicops.flow.runs.run import Place
    from topicops.on_airflow.site import Site
    from topicops.steps.reporting.markup import Html

KIND = "moves"
"""Kind of the DAG, as its name has it."""


def moves_dag(site: Site) -> DAG:
    """Return ``topic_moves_<environment>``. Raises ``UsageError`` for a setting that makes no sense."""
    from topicops.features.moves.on_airflow.dag import moves_dag

    return moves_dag(site)


def moves_of_environment(home: Place, environment: str) -> Html | None:
    """Show all moves of an environment."""
    from topicops.features.moves.on_airflow import pages

    return pages.moves_of_environment(home, environment)


def moves_of_topic(home: Place, environment: str, topic: str) -> Html | None:
    """Show the moves of one topic."""
    from topicops.features.moves.on_airflow import pages

    return pages.moves_of_topic(home, environment, topic)


def moves_of_runs(home: Place, environment: str, runs: Collection[str]) -> Html | None:
    """Show the moves that these runs have begun."""
    from topicops.features.moves.on_airflow import pages

    return pages.moves_of_runs(home, environment, runs)


def topics_that_move(home: Place, environment: str) -> Collection[str]:
    """Name the topics with moves that have not ended; none where the record is damaged, which the pages say."""
    from topicops.features.moves.on_airflow import pages

    return pages.topics_that_move(home, environment)

"""What ``apply`` says when replicas move: how to go on."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.flow.runs.run import EnvironmentRun
from topicops.flow.runs.values import RunResults
from topicops.model.printable import plural
from topicops.model.runs.results import OutcomeStatus


def how_to_go_on(run: EnvironmentRun, results: RunResults) -> Iterator[str]:
    """Yield the command that carries the moves of this run on; nothing where it began none."""
    if topics := {outcome.topic for outcome in results.outcomes if outcome.status is OutcomeStatus.MOVING}:
        yield (
            f"Replicas of {plural(len(topics), 'topic')} move, step by step. To carry them on, and to see how far they "
            f"are: topicops moves --watch --environment {run.environment}"
        )

"""The hook for tasks of your own that need a topic in good health."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

if TYPE_CHECKING:
    from topicops.model.runs.results import Check


class KafkaTopicsHook(BaseHook):
    """Looks at topics of one environment by the rules of ``verify``. Reads only; works in a running task.

    Each method raises ``UsageError`` or ``SpecError`` if the environment's file cannot be used, ``ClusterError`` if the
    cluster cannot be read, and ``WrongTargetError`` if it is another one.
    """

    def __init__(self, environment: str, topics: str | Path) -> None:
        """
        Args:
            environment: The name of its file in ``<topics>/environments/``, without ``.yaml``.
            topics: The folder of the topic files.
        """
        super().__init__()
        self.environment, self.topics = environment, Path(topics)

    def checks(self, topic: str) -> tuple[Check, ...]:
        """The result of each rule for this topic, as it is now: twice in a row, a moment apart, if it is healthy."""
        from topicops.flow import verifying
        from topicops.flow.runs.run import open_run
        from topicops.on_airflow.connections import from_airflow, mask_settings

        mask_settings()
        run = open_run(
            environment=self.environment,
            topics=self.topics,
            group="hook",
            run_id=topic,
            connections=from_airflow,
        )
        return verifying.check_topics(run, [topic])

    def problems(self, topic: str) -> tuple[str, ...]:
        """What is wrong with this topic, a sentence each; empty: it is there and healthy."""
        return tuple(f"{check.id}: {check.message}" for check in self.checks(topic) if check.is_problem)

    def is_healthy(self, topic: str) -> bool:
        """Whether the topic is there, and no rule finds anything wrong."""
        return not self.problems(topic)

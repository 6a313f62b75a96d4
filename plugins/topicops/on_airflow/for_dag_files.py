"""What DAG files of your own take from topicops: assets to wait for, a sensor and a hook. Light to import."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, BaseHook, BaseSensorOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from topicops.model.errors import ClusterError, TopicopsError
from topicops.on_airflow.site import NO_RETRY

if TYPE_CHECKING:
    from topicops.model.runs.results import Check

log = logging.getLogger(__name__)


def topic_asset(environment: str, topic: str) -> Asset:
    """Return ``topicops://prod-eu/shop.orders``: put it into the ``schedule`` of a DAG that waits for this topic."""
    return Asset(f"topicops://{environment}/{topic}", group=f"topicops-{environment}")


def topics_alias(environment: str) -> AssetAlias:
    """Return ``topicops://prod-eu``: put it into the ``schedule`` of a DAG that runs after each change of any topic."""
    return AssetAlias(f"topicops://{environment}", group=f"topicops-{environment}")


def kafka_asset(server: str, topic: str) -> Asset:
    """Return ``kafka://b1:9092/shop.orders``: the same topic as DAGs know it that use Airflow's Kafka provider."""
    return Asset(f"kafka://{server}/{topic}")


def kafka_alias(environment: str) -> AssetAlias:
    """Return the alias of the assets ``kafka://``; a DAG that waits for ``topics_alias`` sees each change once."""
    return AssetAlias(f"topicops+kafka://{environment}", group=f"topicops-{environment}")


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
        """Return each rule's result for this topic now: twice in a row, a moment apart, if it is healthy."""
        from topicops.flow import verifying  # DAG files are parsed without these four
        from topicops.flow.runs.run import open_run
        from topicops.on_airflow.connections import from_airflow, mask_settings
        from topicops.plugged import moves

        mask_settings()
        run = open_run(
            environment=self.environment,
            topics=self.topics,
            group="hook",
            run_id=topic,
            connections=from_airflow,
            moves=moves(),
        )
        return verifying.check_topics(run, [topic])

    def problems(self, topic: str) -> tuple[str, ...]:
        """Return what is wrong with this topic, a sentence each; empty: it is there and healthy."""
        return tuple(f"{check.id}: {check.message}" for check in self.checks(topic) if check.is_problem)

    def is_healthy(self, topic: str) -> bool:
        """Return whether the topic is there, and no rule finds anything wrong."""
        return not self.problems(topic)


class TopicHealthySensor(BaseSensorOperator):
    """Waits until a topic is there and healthy by all rules of ``verify``; the log says what is still wrong.

    A cluster that does not answer is waited for too. An environment that cannot be used, or another cluster than the
    environment's, fails the task at once.
    """

    template_fields: Sequence[str] = ("environment", "topic")

    def __init__(
        self, *, environment: str, topics: str | Path, topic: str, mode: str = "reschedule", **kwargs: Any
    ) -> None:
        """
        Args:
            environment: The name of its file in ``<topics>/environments/``, without ``.yaml``.
            topics: The folder of the topic files.
            topic: The name of the topic.
            mode: Airflow's; in ``reschedule`` it holds no worker between two looks.
        """
        super().__init__(mode=mode, **kwargs)
        self.environment, self.topics, self.topic = environment, str(topics), topic

    def poke(self, context: Context) -> bool:  # noqa: ARG002  Airflow's signature
        try:
            problems: Sequence[str] = KafkaTopicsHook(self.environment, self.topics).problems(self.topic)
        except NO_RETRY as error:
            raise AirflowFailException(str(error)) from error
        except ClusterError as error:
            problems = [str(error)]
        except TopicopsError as error:
            raise AirflowException(str(error)) from error
        for problem in problems:
            log.info("%s: %s", self.topic, problem)
        return not problems

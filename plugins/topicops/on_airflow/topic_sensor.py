"""The sensor for DAGs of your own that need a topic in good health."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import BaseSensorOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from topicops.model.errors import ClusterError, TopicopsError
from topicops.on_airflow.kafka_topics_hook import KafkaTopicsHook
from topicops.on_airflow.tasks import NO_RETRY

log = logging.getLogger(__name__)


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
        problems = self._problems()
        for problem in problems:
            log.info("%s: %s", self.topic, problem)
        return not problems

    def _problems(self) -> Sequence[str]:
        try:
            return KafkaTopicsHook(self.environment, self.topics).problems(self.topic)
        except NO_RETRY as error:
            raise AirflowFailException(str(error)) from error
        except ClusterError as error:
            return [str(error)]
        except TopicopsError as error:
            raise AirflowException(str(error)) from error

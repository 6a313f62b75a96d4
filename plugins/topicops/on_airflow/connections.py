"""Airflow's connections, from its secrets backends, environment variables or database, and their type ``zookeeper``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from topicops.model.errors import TopicopsError, UsageError
from topicops.model.ports import ConnectionFields
from topicops.model.runs.results import REVIEW_KEY

if TYPE_CHECKING:
    from topicops.flow.runs.access import ZooKeeperAddress

SECRETS_BY_OTHER_NAMES = (
    "sasl.jaas.config",
    "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.config",
    "ssl.key.pem",
    "ssl.keystore.key",
)
"""Secret properties of librdkafka and of Java clients that are not in Airflow's list of sensitive names."""
SECRET_OF_SPARK = re.compile(r"spark\..*(secret|passw|token|credential|key)", re.IGNORECASE)
"""Names of Spark's settings with secret values; Airflow does not know Azure's account keys."""


def mask_settings() -> None:
    """Mask the secrets in this task's variables. Raises ``UsageError`` for a variable that cannot be used."""
    from topicops.on_airflow.plugged import SECRETS

    found = [secret for secrets in SECRETS for secret in secrets()]
    _mask([*found, os.environ.get(REVIEW_KEY, "")])


def _mask(secrets: Iterable[str], by_name: Mapping[str, str] = MappingProxyType({})) -> None:
    """Mask these, and the values of sensitive names, in one message: the worker answers each one in its turn."""
    if found := [*filter(None, secrets), *([{**by_name}] if by_name else ())]:
        mask_secret(found)


def from_airflow(connection_id: str) -> ConnectionFields:
    """Fills ``edges.connections.ConnectionSource``; works only in a running task; Airflow masks its secrets.

    Raises ``UsageError``: airflow has no connection of that id, or cannot read it.
    """
    try:
        found = BaseHook.get_connection(connection_id)
        extra = dict(found.extra_dejson)  # Airflow masks what has a sensitive name, where it is text
    except AirflowNotFoundException as error:
        raise UsageError(
            f"connection {connection_id!r} is not known to Airflow; "
            f"add it there, or set the variable AIRFLOW_CONN_{connection_id.upper()}"
        ) from error
    except (OverflowError, RecursionError, TypeError, ValueError):  # each may contain a value
        raise UsageError(
            f"connection {connection_id!r} cannot be read by Airflow: its port is no number from 1 to 65535, or its "
            "extra is no JSON object; correct it there"
        ) from None
    texts = [str(extra.get(name) or "") for name in (*SECRETS_BY_OTHER_NAMES, *filter(SECRET_OF_SPARK.match, extra))]
    lines = (line for text in texts for line in text.splitlines())  # a log may split a key into lines
    _mask([*texts, *lines], {name: str(value) for name, value in extra.items() if isinstance(value, int | float)})
    return ConnectionFields(
        conn_type=found.conn_type or "",
        host=found.host or "",
        port=found.port,
        login=found.login or "",
        password=found.password or "",
        schema=found.schema or "",
        extra=extra,
        callbacks=conf.get("apache_kafka", "callback_allowlist", fallback="") or "",
    )


class ZooKeeperHook(BaseHook):
    """Finds a ZooKeeper by its connection id, and checks that it serves a Kafka cluster. Reads only."""

    conn_name_attr = "zookeeper_conn_id"
    default_conn_name = "zookeeper_default"
    conn_type = "zookeeper"
    hook_name = "ZooKeeper"

    def __init__(self, zookeeper_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.zookeeper_conn_id = zookeeper_conn_id

    def address(self) -> ZooKeeperAddress:
        """Give the address and identity that a run would use. Raises ``UsageError``."""
        from topicops.flow.runs.access import zookeeper_of  # a DAG file may make the hook

        return zookeeper_of(self.zookeeper_conn_id, from_airflow)

    def test_connection(self) -> tuple[bool, str]:
        """Answer the form's Test button: whether ZooKeeper answers, and for which cluster."""
        from topicops.flow.runs.access import describe_zookeeper  # a DAG file may make the hook

        try:
            return True, describe_zookeeper(self.address())
        except TopicopsError as error:
            return False, str(error)

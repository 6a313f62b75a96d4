"""The hook behind Airflow's connection type ``zookeeper``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

from topicops.model.errors import TopicopsError

if TYPE_CHECKING:
    from topicops.flow.runs.access import ZooKeeperAddress


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
        """The address and identity that a run would use. Raises ``UsageError``."""
        from topicops.flow.runs.access import zookeeper_of
        from topicops.on_airflow.connections import from_airflow

        return zookeeper_of(self.zookeeper_conn_id, from_airflow)

    def test_connection(self) -> tuple[bool, str]:
        """For the form's Test button: whether ZooKeeper answers, and for which cluster."""
        from topicops.flow.runs.access import describe_zookeeper

        try:
            return True, describe_zookeeper(self.address())
        except TopicopsError as error:
            return False, str(error)

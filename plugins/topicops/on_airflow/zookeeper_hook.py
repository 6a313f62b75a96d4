"""The hook behind Airflow's connection type ``zookeeper``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

from topicops.model.errors import TopicopsError

if TYPE_CHECKING:
    from topicops.edges.connections.lookup import ZooKeeperAddress


class ZooKeeperHook(BaseHook):
    """Finds a ZooKeeper by its connection id, and tells whether Kafka lives there. Reads only."""

    conn_name_attr = "zookeeper_conn_id"
    default_conn_name = "zookeeper_default"
    conn_type = "zookeeper"
    hook_name = "ZooKeeper"

    def __init__(self, zookeeper_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.zookeeper_conn_id = zookeeper_conn_id

    def address(self) -> ZooKeeperAddress:
        """Where it is, and as whom it is reached: put together exactly as a run does. Raises ``UsageError``."""
        from topicops.edges.connections.lookup import zookeeper_address
        from topicops.model.specs.environment import Cluster, Environment, EnvironmentSpec, ZooKeeperEndpoint
        from topicops.on_airflow.connections import from_airflow

        endpoint = ZooKeeperEndpoint(connection=self.zookeeper_conn_id)
        spec = EnvironmentSpec(cluster=Cluster(cluster_class="sandbox", zookeeper=endpoint))
        return zookeeper_address(Environment(name="", spec=spec, file="the connection"), from_airflow)

    def test_connection(self) -> tuple[bool, str]:
        """For the form's Test button: whether it answers, and for which cluster."""
        from topicops.edges.zookeeper.reader import ZooKeeperReader

        try:
            with ZooKeeperReader(self.address(), timeout_s=5.0) as reader:
                return True, f"cluster {reader.cluster_id()}, {len(reader.brokers())} live broker(s)"
        except TopicopsError as error:
            return False, str(error)

"""Where the local cluster is."""

from __future__ import annotations

from topicops.flow.runs.run import home_folder
from topicops.model.errors import UsageError
from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint


def local_addresses() -> tuple[ZooKeeperEndpoint | None, KafkaEndpoint]:
    """Give the addresses of the cluster that ``topicops local up`` started. Raises ``UsageError`` if none runs."""
    from topicops.features.sandbox.edges.cluster import LocalCluster

    cluster = LocalCluster.find(home_folder())
    status = cluster.status() if cluster else None
    if status is None or not status.running:
        raise UsageError(f"no local cluster runs in {home_folder()}; start one: topicops local up")
    zookeeper = ZooKeeperEndpoint(hosts=status.zookeeper_hosts) if status.zookeeper_hosts else None
    return zookeeper, KafkaEndpoint(bootstrap_servers=status.bootstrap_servers)

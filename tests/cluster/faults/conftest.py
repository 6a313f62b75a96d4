"""What every fault run uses: the session's cluster with its request log on, and a line in the test's report."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from fixtures.fault_runs import SEED, FaultRun
from fixtures.killable import LEASE_S, hasten_leases
from fixtures.request_log import RequestLog
from fixtures.stores import s3_home, s3_variables
from fixtures.summaries import FAULT_RUN
from fixtures.workspace import Workspace
from topicops.edges.object_store import open_bucket
from topicops_local.cluster import LocalCluster


@pytest.fixture(scope="session")
def znodes(local_cluster: LocalCluster) -> Iterator[KazooClient]:
    client = KazooClient(local_cluster.zookeeper_hosts, timeout=60)
    client.start(timeout=60)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def home_kind() -> str:
    return "folder"


@pytest.fixture
def fault_run(
    local_cluster: LocalCluster,
    workspace: Workspace,
    znodes: KazooClient,
    request: pytest.FixtureRequest,
    home_kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[FaultRun]:
    """Yield a fresh one, with its plan made."""
    if home_kind == "store":
        server = request.getfixturevalue("s3_server")
        for name, value in {**s3_variables(server), LEASE_S: "3"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("TOPICOPS_HOME", s3_home(server).bucket.url)
        open_bucket.cache_clear()
        hasten_leases()
    run = FaultRun(
        live=workspace,
        cluster=local_cluster,
        znodes=znodes,
        requests=RequestLog(local_cluster),
        test=request.node.nodeid,
        seed=int(os.environ.get(SEED) or random.randrange(1 << 30)),
        lease="home" if home_kind == "store" else "zookeeper",
        note=lambda line: request.node.user_properties.append((FAULT_RUN, line)),
    )
    yield run
    run.close()

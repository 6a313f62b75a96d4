"""What every fault run shares: the session's cluster with its request log on, and the list of all runs at the end."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from fixtures.fault_runs import SEED, FaultRun
from fixtures.request_log import RequestLog
from fixtures.workspace import Workspace
from topicops.edges.local.cluster import LocalCluster

BOOK: list[str] = []
"""A line for each checked run of this session."""


@pytest.fixture(scope="session")
def znodes(local_cluster: LocalCluster) -> Iterator[KazooClient]:
    client = KazooClient(local_cluster.zookeeper_hosts, timeout=60)
    client.start(timeout=60)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def fault_run(
    local_cluster: LocalCluster, workspace: Workspace, znodes: KazooClient, request: pytest.FixtureRequest
) -> Iterator[FaultRun]:
    """A fresh one, with its plan made."""
    run = FaultRun(
        live=workspace,
        cluster=local_cluster,
        znodes=znodes,
        requests=RequestLog(local_cluster),
        test=request.node.nodeid,
        seed=int(os.environ.get(SEED) or random.randrange(1 << 30)),
        book=BOOK,
    )
    yield run
    run.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not BOOK:
        return
    runs = dict.fromkeys(BOOK)  # some are checked twice
    terminalreporter.section(f"fault runs: {len(runs)}")
    for line in runs:
        terminalreporter.line(line)

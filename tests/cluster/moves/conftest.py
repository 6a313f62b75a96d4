"""A cluster for each file of tests, and what moves replicas there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.cluster import running
from fixtures.moving import Moving, moving_on
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("3.9.2", id="3.9.2"),
        pytest.param("4.4.0", id="4.4.0"),
        pytest.param("2.4.1", id="2.4.1", marks=pytest.mark.soak),
        pytest.param("2.8.2", id="2.8.2", marks=pytest.mark.soak),
    ],
)
def cluster(request: pytest.FixtureRequest, fast_folder: Path) -> Iterator[LocalCluster]:
    """With ZooKeeper, but for 4.4."""
    kafka = str(request.param)
    with running(fast_folder / f"{request.path.stem}-{kafka}", kafka=kafka) as found:
        yield found


@pytest.fixture
def moving(cluster: LocalCluster, workspace: Workspace) -> Iterator[Moving]:
    with moving_on(cluster, workspace) as found:
        yield found

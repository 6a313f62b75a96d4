"""Two hosts, which share an object store and nothing else, take turns at one KRaft cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.live import new_admin, spec_by_brokers
from fixtures.stores import s3_home, s3_variables
from fixtures.workspace import Workspace
from topicops.edges.object_store import open_bucket
from topicops.edges.places import StoredPath, home_at
from topicops_local.cluster import LocalCluster

NAME = "in-a-store"


@pytest.fixture
def live(
    kraft_cluster: LocalCluster, workspace: Workspace, s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workspace]:
    """A workspace of a KRaft cluster, whose file names no lease."""
    workspace.cluster = spec_by_brokers(kraft_cluster)
    workspace.cluster.pop("lease", None)
    workspace.policy |= {"unattended": "destructive", "deleteActive": "allow"}
    for name, value in s3_variables(s3_server).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TOPICOPS_HOME", s3_home(s3_server).bucket.url)
    open_bucket.cache_clear()
    yield workspace
    for future in new_admin(kraft_cluster.bootstrap_servers).delete_topics([NAME]).values():
        future.exception(30)


def test_a_second_host_goes_on_where_the_first_ended(
    live: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "first"))
    live.topic(NAME)
    assert (planned := live.plan()).status == 0, planned.err
    assert (applied := live.apply()).status == 0, applied.err
    assert "the lease is a file" not in applied.out + applied.err

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "second"))
    open_bucket.cache_clear()
    assert "No changes." in (planned := live.plan()).out, planned.err
    assert (verified := live.run("verify", "--environment", "local")).status == 0, verified.err
    live.tombstone(NAME)
    assert (planned := live.plan()).status == 0, planned.err
    assert (applied := live.apply()).status == 0, applied.err

    audited = live.run("audit", "verify")
    assert audited.status == 0, audited.out + audited.err
    home = home_at(os.environ["TOPICOPS_HOME"])
    assert isinstance(home, StoredPath)
    assert [part.name for part in (home / "audit" / "local.jsonl").parts()] == ["000000000001", "000000000002"]
    [lease] = (home / "lease").glob("*.json")
    entry = json.loads(lease.read_bytes())
    assert (entry["number"], entry["holder"]) == (2, None)
    assert not (tmp_path / "home").exists()

"""What ``up`` plans before it starts anything: ports, roles, and the sort of cluster that a folder holds."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from topicops.edges.local.server_files import kraft_properties, properties_text
from topicops.edges.local.state import ClusterRequest, planned_state, write_state
from topicops.model.errors import UsageError

KRAFT = ClusterRequest(kraft=True)


def test_a_kraft_cluster_has_brokers_with_two_ports_each_and_an_id_from_the_start(tmp_path: Path) -> None:
    state = planned_state(tmp_path, KRAFT, fresh=False)

    ports = [port for server in state.servers for port in (server.port, server.controller_port)]
    assert [server.role for server in state.servers] == ["broker-1", "broker-2", "broker-3"]
    assert None not in ports
    assert len(set(ports)) == 6
    assert state.kraft
    assert len(base64.urlsafe_b64decode(f"{state.cluster_id}==")) == 16


def test_a_stopped_kraft_cluster_comes_up_on_its_ports_and_with_its_id(tmp_path: Path) -> None:
    first = planned_state(tmp_path, KRAFT, fresh=False)
    write_state(tmp_path, first)

    assert planned_state(tmp_path, KRAFT, fresh=False) == first


@pytest.mark.parametrize(
    ("had", "asked"), [pytest.param(False, True, id="to KRaft"), pytest.param(True, False, id="to ZooKeeper")]
)
def test_data_of_the_other_sort_are_kept_until_a_fresh_start_is_asked_for(
    tmp_path: Path, *, had: bool, asked: bool
) -> None:
    write_state(tmp_path, planned_state(tmp_path, ClusterRequest(kraft=had), fresh=False))
    (tmp_path / "broker-1" / "data").mkdir(parents=True)

    with pytest.raises(UsageError, match="add --fresh"):
        planned_state(tmp_path, ClusterRequest(kraft=asked), fresh=False)
    kept = (tmp_path / "broker-1" / "data").exists()
    state = planned_state(tmp_path, ClusterRequest(kraft=asked), fresh=True)

    assert kept
    assert not (tmp_path / "broker-1" / "data").exists()
    assert (state.kraft, state.cluster_id is None) == (asked, not asked)


def test_a_kraft_cluster_takes_no_port_of_a_zookeeper() -> None:
    with pytest.raises(UsageError, match="no ZooKeeper"):
        ClusterRequest(kraft=True, zookeeper_port=2181)


def test_brokers_stand_on_a_rack_of_their_own_or_on_those_that_are_given(tmp_path: Path) -> None:
    def racks(request: ClusterRequest) -> list[str | None]:
        return [server.rack for server in planned_state(tmp_path, request, fresh=False).brokers]

    assert racks(ClusterRequest()) == ["r1", "r2", "r3"]
    assert racks(ClusterRequest(racks=("a", "a", None))) == ["a", "a", None]
    with pytest.raises(UsageError, match="2 are given"):
        ClusterRequest(racks=("a", "b"))


def test_a_broker_without_a_rack_is_told_of_none() -> None:
    assert properties_text({"broker.id": "1", "broker.rack": ""}) == "broker.id=1\n"


def test_each_kraft_server_knows_all_voters_and_no_zookeeper(tmp_path: Path) -> None:
    properties = kraft_properties(
        2, rack="r2", port=9092, controller_ports={1: 19091, 2: 19092}, data=tmp_path, extra={"num.io.threads": "9"}
    )

    assert properties["controller.quorum.voters"] == "1@127.0.0.1:19091,2@127.0.0.1:19092"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:19092"
    assert properties["num.io.threads"] == "9"
    assert [name for name in properties if name.startswith("zookeeper")] == []

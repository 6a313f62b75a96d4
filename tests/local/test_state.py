"""What ``up`` plans before it starts anything: ports, roles, and the sort of cluster that a folder holds."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, cast

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import SessionExpiredError

from topicops.model.errors import UsageError
from topicops_local.cluster import LocalCluster
from topicops_local.jars import usual_version, version_of
from topicops_local.server_files import kraft_properties, log_settings, properties_text
from topicops_local.state import ClusterRequest, ClusterState, Server, planned_state, read_state, write_state

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


def test_each_server_runs_the_kafka_that_was_asked_for_and_later_that_of_the_data(tmp_path: Path) -> None:
    write_state(tmp_path, planned_state(tmp_path, ClusterRequest(kafka="2.5.1"), fresh=False))

    again = planned_state(tmp_path, ClusterRequest(), fresh=False)
    fresh = planned_state(tmp_path, ClusterRequest(), fresh=True)

    assert again.versions == ("2.5.1",)
    assert fresh.versions == (usual_version(),)


def test_servers_of_several_versions_come_up_with_the_versions_and_settings_that_they_had(tmp_path: Path) -> None:
    state = planned_state(tmp_path, ClusterRequest(kafka="2.5.1"), fresh=False)
    first = replace(state.server("broker-1"), kafka="2.8.2", properties={"inter.broker.protocol.version": "2.5"})
    write_state(tmp_path, state.with_server(first))

    again = planned_state(tmp_path, ClusterRequest(), fresh=False)

    assert again.versions == ("2.5.1", "2.8.2")
    assert again.server("broker-1") == first


@pytest.mark.parametrize(
    ("had", "asked", "said"),
    [
        pytest.param("2.5.1", "2.8.2", "written by Kafka 2.5.1; add --upgrade to go on with Kafka 2.8.2", id="newer"),
        pytest.param("3.9.2", "3.10.0", "add --upgrade to go on with Kafka 3.10.0", id="by number, not by letter"),
        pytest.param("2.8.2", "2.5.1", "which the older Kafka 2.5.1 may not understand: add --fresh", id="older"),
        pytest.param("3.9.2", "4.4.0", "a cluster with ZooKeeper; a cluster with KRaft cannot use", id="KRaft"),
    ],
)
def test_data_of_another_kafka_are_kept_until_a_fresh_start_or_an_upgrade_is_asked_for(
    tmp_path: Path, had: str, asked: str, said: str
) -> None:
    write_state(tmp_path, planned_state(tmp_path, ClusterRequest(kafka=had), fresh=False))

    with pytest.raises(UsageError) as refused:
        planned_state(tmp_path, ClusterRequest(kafka=asked), fresh=False)

    assert said in str(refused.value)
    assert planned_state(tmp_path, ClusterRequest(kafka=asked), fresh=True).versions == (asked,)


def test_an_upgrade_that_was_asked_for_takes_the_data_and_a_step_back_never(tmp_path: Path) -> None:
    write_state(tmp_path, planned_state(tmp_path, ClusterRequest(kafka="2.5.1"), fresh=False))
    write_state(tmp_path, planned_state(tmp_path, ClusterRequest(kafka="2.8.2", upgrade=True), fresh=False))

    assert read_state(tmp_path) is not None
    with pytest.raises(UsageError, match=r"the older Kafka 2\.5\.1"):
        planned_state(tmp_path, ClusterRequest(kafka="2.5.1", upgrade=True), fresh=False)


def test_patch_versions_of_one_release_take_the_data_of_each_other(tmp_path: Path) -> None:
    write_state(tmp_path, planned_state(tmp_path, ClusterRequest(kafka="2.8.2"), fresh=False))
    assert planned_state(tmp_path, ClusterRequest(kafka="2.8.1"), fresh=False).versions == ("2.8.1",)


def test_a_kafka_without_zookeeper_is_a_kraft_cluster_unasked(tmp_path: Path) -> None:
    assert planned_state(tmp_path, ClusterRequest(kafka="4.4.0"), fresh=False).kraft
    with pytest.raises(UsageError, match=r"Kafka 4\.4\.0 has no ZooKeeper; ask for KRaft"):
        ClusterRequest(kafka="4.4.0", kraft=False)
    with pytest.raises(UsageError, match=r"Kafka 2\.8\.2 needs ZooKeeper: KRaft is ready from Kafka 3\.3 on"):
        ClusterRequest(kafka="2.8.2", kraft=True)


def test_a_state_file_without_versions_is_of_the_usual_kafka(tmp_path: Path) -> None:
    """As it was written before there were others."""
    write_state(tmp_path, ClusterState(servers=(Server(role="broker-1", port=1),)))
    file = tmp_path / "state.json"
    file.write_text(file.read_text().replace(f'"kafka": "{usual_version()}",', ""))

    state = read_state(tmp_path)

    assert "kafka" not in file.read_text()
    assert state is not None
    assert state.versions == (usual_version(),)


def test_servers_log_by_the_log4j_that_is_on_their_class_path() -> None:
    assert log_settings([Path("reload4j-1.2.19.jar")])[0] == "log4j.properties"
    assert log_settings([Path("log4j-core-2.24.3.jar")])[0] == "log4j2.properties"


@pytest.mark.parametrize(
    ("text", "version"),
    [("2.8.1", "2.8.1"), ("2.8", "2.8.2"), ("1.0", "1.0.2"), ("2", "2.8.2"), ("3.9", usual_version())],
)
def test_a_release_names_its_pinned_version_and_a_version_itself(text: str, version: str) -> None:
    assert version_of(text) == version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("newest", "newest is no release of Kafka; give one of 1.0, "),
        ("0.11.0.3", "0.11.0.3 is no release of Kafka"),
        ("0.11", "the local cluster does not run Kafka 0.11; it runs 1.0 to 4.4"),
        ("5.0.0", "the local cluster does not run Kafka 5.0; it runs 1.0 to 4.4"),
        ("3.9-IV0", "is no release of Kafka"),
    ],
)
def test_a_kafka_that_does_not_run_here_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        version_of(text)
    assert said in str(refused.value)


# ---- The start of a local cluster on a machine that is busy ----


class Expired:
    """A client whose session has just ended."""

    def get_children(self, _: str) -> NoReturn:
        raise SessionExpiredError


def test_a_session_that_ends_while_brokers_start_is_waited_for_like_all_else() -> None:
    cluster = object.__new__(LocalCluster)

    missing = cluster._not_ready(cast("KazooClient", Expired()), {1})

    assert missing == "the session with ZooKeeper has ended; a new one begins"

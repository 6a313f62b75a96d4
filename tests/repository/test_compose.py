"""docker-compose.yml, as far as it can be held true without a container engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
BROKERS = [name for name in SERVICES if name.startswith("broker-")]
AIRFLOW = [name for name in SERVICES if name.startswith("airflow-")]
ENDS_BY_ITSELF = {"airflow-init"}


def test_it_has_zookeeper_three_brokers_postgres_and_airflows_services() -> None:
    assert {"zookeeper", "postgres"} <= set(SERVICES)
    assert len(BROKERS) == 3
    assert set(AIRFLOW) == {
        "airflow-init",
        "airflow-apiserver",
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
    }


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_tells_whether_it_is_healthy_or_ends_by_itself(service: str) -> None:
    assert ("healthcheck" in SERVICES[service]) != (service in ENDS_BY_ITSELF)


@pytest.mark.parametrize("service", SERVICES)
def test_every_image_names_its_version(service: str) -> None:
    assert re.fullmatch(r"[a-z0-9/-]+:[0-9]+\.[0-9]+(\.[0-9]+)?", SERVICES[service]["image"])


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_published_on_the_loopback_interface_only(service: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[service].get("ports", []))


@pytest.mark.parametrize("service", SERVICES)
def test_every_mount_exists_in_the_repository_or_is_a_declared_volume(service: str) -> None:
    for mount in SERVICES[service].get("volumes", []):
        source = mount.split(":")[0]
        assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_waits_for_a_service_that_does_not_exist(service: str) -> None:
    assert set(SERVICES[service].get("depends_on", {})) <= set(SERVICES)


def test_brokers_differ_in_id_rack_and_published_port_and_share_the_chroot() -> None:
    environments = [SERVICES[broker]["environment"] for broker in BROKERS]
    assert len({e["KAFKA_BROKER_ID"] for e in environments}) == 3
    assert len({e["KAFKA_BROKER_RACK"] for e in environments}) == 3
    assert len({SERVICES[broker]["ports"][0] for broker in BROKERS}) == 3
    assert {e["KAFKA_ZOOKEEPER_CONNECT"] for e in environments} == {"zookeeper:2181/kafka"}


@pytest.mark.airflow
def test_every_airflow_setting_is_one_that_airflow_knows() -> None:
    from airflow.configuration import conf

    known = {
        f"AIRFLOW__{section.upper()}__{option.upper()}"
        for section, options in conf.configuration_description.items()
        for option in options["options"]
    }
    for service in AIRFLOW:
        names = [n for n in SERVICES[service]["environment"] if n.startswith("AIRFLOW__")]
        assert [n for n in names if n not in known] == []


def test_airflows_connections_are_those_that_the_local_environment_names() -> None:
    environment = (ROOT / "topics/environments/local.yaml").read_text(encoding="utf-8")
    cluster = yaml.safe_load(environment)["spec"]["cluster"]
    named = {cluster[side]["connection"].upper() for side in ("zookeeper", "kafka")}
    given = {n.removeprefix("AIRFLOW_CONN_") for n in SERVICES["airflow-scheduler"]["environment"] if "_CONN_" in n}
    assert named <= given


def test_the_image_installs_what_is_locked() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "--require-hashes -r /opt/topicops/requirements.lock" in dockerfile

"""Dockerfile, as far as it can be held true without a container engine."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STAGES = dict(re.findall(r"^FROM \S+ AS (\w+)\n(.*?)(?=^FROM |\Z)", DOCKERFILE, re.DOTALL | re.MULTILINE))
"""Instructions by target, in order."""


def test_without_a_target_the_image_with_airflow_is_built_and_docker_compose_names_none() -> None:
    assert list(STAGES) == ["cli", "airflow"]
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    assert {service["build"] for service in services.values() if "build" in service} == {"."}


def test_airflow_is_the_slim_image_of_the_release_that_is_locked() -> None:
    lock = (ROOT / "requirements-image.lock").read_text(encoding="utf-8")
    (release,) = re.findall(r"^apache-airflow==(\S+)", lock, re.MULTILINE)
    assert f"\nFROM apache/airflow:slim-{release}-python3.11 AS airflow\n" in DOCKERFILE
    installed = re.findall(r"-r /opt/topicops/(\S+)", STAGES["airflow"])
    assert installed == ["requirements-uv.txt", "requirements-image.lock"]


def test_java_is_that_of_the_images_own_distribution() -> None:
    assert "default-jre-headless" in STAGES["airflow"]
    assert not re.search(r"openjdk-\d|temurin", DOCKERFILE, re.IGNORECASE)


def test_the_engine_is_sent_each_file_that_an_image_copies() -> None:
    ignored, *sent = [
        line
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert ignored == "*"
    assert set(copied_files()) == {line.removeprefix("!") for line in sent if line.startswith("!")}


def test_the_slim_image_has_the_base_install_alone_and_runs_it_as_a_user() -> None:
    installed = re.findall(r"-r /opt/topicops/(\S+)", STAGES["cli"])
    assert installed == ["requirements-uv.txt", "requirements-cli.lock"]
    assert not re.search(r"jre|java|spark|airflow", STAGES["cli"])
    assert STAGES["cli"].index("USER topicops") < STAGES["cli"].index('ENTRYPOINT ["topicops"]')


def test_each_file_that_an_image_copies_is_there() -> None:
    names = copied_files()
    assert "requirements-cli.lock" in names
    assert [name for name in names if not (ROOT / name).exists()] == []


def copied_files() -> list[str]:
    copied = [line.split()[1:-1] for line in DOCKERFILE.splitlines() if line.startswith("COPY ")]
    return [name for words in copied for name in words if not name.startswith("--")]

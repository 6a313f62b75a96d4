"""docker-compose.yml, Dockerfile and the Helm values, as far as they can be held true without running them."""

from __future__ import annotations

import base64
import inspect
import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
BROKERS = [name for name in SERVICES if name.startswith("broker-")]
AIRFLOW = [name for name in SERVICES if name.startswith("airflow-")]
ENDS_BY_ITSELF = {"airflow-init"}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
BUILT_HERE = "topicops-airflow:0.1.0"
IMAGES = {*re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE), *(s["image"] for s in SERVICES.values())} - {
    BUILT_HERE
}
WITHOUT_DIGEST = {
    "apache/airflow:slim-3.3.2-python3.13",
    "confluentinc/cp-kafka:7.9.2",
    "confluentinc/cp-zookeeper:7.9.2",
    "python:3.13.15-slim-trixie",
}
"""Their digests are not known here; `make pin-images` writes them where docker and the registry can be reached."""
SUBSTITUTED = re.compile(r"(?<!\$)\$\{([A-Z_]+)([^}]*)\}")
SECRETS = {name for name, _ in SUBSTITUTED.findall((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))}
FOLDERS_OF_THE_IMAGE = {"/opt/airflow/logs"}
"""Of Airflow's own image, owned by its user; Dockerfile of apache/airflow, 3.3."""


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
def test_every_service_has_a_check_a_version_its_mounts_and_what_it_waits_for(service: str) -> None:
    """Ports are published on the loopback interface only."""
    described = SERVICES[service]
    assert ("healthcheck" in described) != (service in ENDS_BY_ITSELF)
    assert re.fullmatch(r"[a-z0-9/-]+:[0-9]+\.[0-9]+(\.[0-9]+)?(@sha256:[0-9a-f]{64})?", described["image"])
    assert all(port.startswith("127.0.0.1:") for port in described.get("ports", []))
    for source in (mount.split(":")[0] for mount in described.get("volumes", [])):
        assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
    assert set(described.get("depends_on", {})) <= set(SERVICES)


def test_every_image_has_the_digest_that_is_known() -> None:
    without = {image for image in IMAGES if not re.search(r"@sha256:[0-9a-f]{64}$", image)}
    assert without <= WITHOUT_DIGEST


def test_the_pipeline_uses_the_spark_service() -> None:
    environment = SERVICES["airflow-scheduler"]["environment"]
    connection_id = environment["TOPICOPS_SPARK"].removeprefix("connection:")
    connection = json.loads(environment[f"AIRFLOW_CONN_{connection_id.upper()}"])

    assert (connection["conn_type"], connection["host"]) == ("spark_connect", "spark")
    assert f"spark.connect.grpc.binding.port={connection['port']}" in SERVICES["spark"]["command"][-1]
    assert SERVICES["airflow-scheduler"]["depends_on"]["spark"] == {"condition": "service_healthy"}
    assert "ports" not in SERVICES["spark"]


def test_tasks_start_from_a_process_that_has_imported_what_they_need() -> None:
    from topicops_local.airflow import PRELOADED

    environment = SERVICES["airflow-scheduler"]["environment"]
    assert environment["AIRFLOW__CORE__MP_START_METHOD"] == "forkserver"
    assert environment["AIRFLOW__CORE__MP_FORKSERVER_PRELOAD"].split(",") == list(PRELOADED)


def test_the_image_has_sparks_class_archive() -> None:
    assert "RUN topicops spark archive" in DOCKERFILE


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


def test_the_image_is_built_once_for_all_services_that_use_it() -> None:
    assert [name for name, service in SERVICES.items() if "build" in service] == ["airflow-init"]
    assert {SERVICES[name]["image"] for name in (*AIRFLOW, "spark")} == {BUILT_HERE}


@pytest.mark.parametrize("service", sorted(SERVICES.keys() - ENDS_BY_ITSELF))
def test_a_health_check_that_starts_airflow_runs_once_a_minute_and_none_starts_a_jvm(service: str) -> None:
    check = SERVICES[service]["healthcheck"]
    command = " ".join(check["test"])
    assert not re.search(r"kafka-|zookeeper-shell|java", command)
    assert "airflow jobs check" not in command or check["interval"] == "60s"


def test_the_check_of_a_broker_knows_whether_its_port_is_open() -> None:
    command = SERVICES["broker-1"]["healthcheck"]["test"]
    assert command[:3] == ["CMD", "bash", "-c"]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        open_port = str(listening.getsockname()[1])
        assert "19092" in SERVICES["broker-1"]["environment"]["KAFKA_LISTENERS"]
        opened = subprocess.run([*command[1:3], command[3].replace("19092", open_port)], check=False, timeout=10)
    closed = subprocess.run([*command[1:3], command[3].replace("19092", open_port)], check=False, capture_output=True)
    assert opened.returncode == 0
    assert closed.returncode != 0


def test_pipeline_and_drift_check_run_by_themselves() -> None:
    environment = SERVICES["airflow-dag-processor"]["environment"]
    assert environment["TOPICOPS_SCHEDULE"] == "@hourly"
    assert environment["TOPICOPS_DRIFT_SCHEDULE"] == "@daily"


def test_over_it_a_second_file_reads_dags_and_topics_from_a_git_repository() -> None:
    over = yaml.safe_load((ROOT / "deploy/compose-git.yml").read_text(encoding="utf-8"))["services"]
    assert set(over) == set(AIRFLOW)
    for service in over.values():
        environment = service["environment"]
        (bundle,) = json.loads(environment["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"])
        assert bundle["classpath"].endswith(".GitDagBundle")
        assert f"AIRFLOW_CONN_{bundle['kwargs']['git_conn_id'].upper()}" in environment
        assert json.loads(SUBSTITUTED.sub("address", environment["AIRFLOW_CONN_TOPICS_REPO"]))["conn_type"] == "git"


@pytest.mark.parametrize("service", SERVICES)
def test_no_secret_has_a_default(service: str) -> None:
    for name, value in SERVICES[service]["environment"].items():
        if re.search(r"SECRET|FERNET|PASSWORD$|SQL_ALCHEMY_CONN", name):
            assert SUBSTITUTED.search(value), name
        assert all(rest.startswith(":?") for _, rest in SUBSTITUTED.findall(value)), name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of what make works on."""
    for name in ("Makefile", "Dockerfile", "docker-compose.yml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(target: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    command = ["make", "--no-print-directory", target]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_make_writes_each_secret_that_the_services_ask_for_readable_by_its_user_only(folder: Path) -> None:
    made = make("compose-secrets", folder)

    assert made.returncode == 0, made.stderr
    file = folder / ".env"
    written = dict(line.split("=", 1) for line in file.read_text(encoding="utf-8").splitlines())
    assert written.keys() == SECRETS
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(set(written.values())) == len(written)
    assert len(base64.urlsafe_b64decode(written.pop("TOPICOPS_FERNET_KEY"))) == 32
    assert all(len(secret) >= 64 for secret in written.values())  # HS512 asks for 64 bytes
    assert not (made.stdout + made.stderr).count(written["TOPICOPS_JWT_SECRET"])


def test_make_leaves_secrets_that_are_there(folder: Path) -> None:
    (folder / ".env").write_text("TOPICOPS_JWT_SECRET=mine\n", encoding="utf-8")

    assert make("compose-secrets", folder).returncode == 0
    assert (folder / ".env").read_text(encoding="utf-8") == "TOPICOPS_JWT_SECRET=mine\n"


@pytest.mark.parametrize("ignoring", [".gitignore", ".dockerignore"])
def test_the_file_of_secrets_stays_out_of_git_and_of_the_image(ignoring: str) -> None:
    patterns = (ROOT / ignoring).read_text(encoding="utf-8").splitlines()
    assert {"/.env*", "*"} & set(patterns)
    assert not any(pattern.startswith("!") and "env" in pattern for pattern in patterns)


def test_every_volume_of_airflow_is_on_a_folder_that_airflows_user_owns() -> None:
    made = set(re.findall(r"mkdir -m 0700 (\S+)", DOCKERFILE.rpartition("USER airflow")[2]))
    for service in AIRFLOW:
        mounts = [mount.split(":") for mount in SERVICES[service]["volumes"]]
        folders = {mount[1] for mount in mounts if mount[0] in COMPOSE["volumes"]}
        assert folders <= made | FOLDERS_OF_THE_IMAGE


def engine(folder: Path, answer: str) -> str:
    """A ``docker`` that gives ``answer`` for each image; gives the PATH that finds it."""
    program = folder / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def test_make_pins_all_images_to_the_digests_that_the_registry_gives(folder: Path) -> None:
    digest = f"sha256:{'7' * 64}"

    for _ in range(2):  # a second time replaces the digests of the first
        made = make("pin-images", folder, PATH=engine(folder, digest))
        assert made.returncode == 0, made.stderr
        shutil.rmtree(folder / "bin")

    text = "".join((folder / name).read_text(encoding="utf-8") for name in ("Dockerfile", "docker-compose.yml"))
    pinned = re.findall(r"(?:^FROM|^ +image:) (\S+)", text, re.MULTILINE)
    assert {image for image in pinned if not image.endswith(f"@{digest}")} == {BUILT_HERE}
    assert {image.partition("@")[0] for image in pinned} - {BUILT_HERE} == {i.partition("@")[0] for i in IMAGES}


def test_make_pins_nothing_where_the_registry_gives_no_digest(folder: Path) -> None:
    made = make("pin-images", folder, PATH=engine(folder, "Name: docker.io/library/postgres"))

    assert made.returncode != 0
    assert "docker gave no digest" in made.stderr
    for name in ("Dockerfile", "docker-compose.yml"):
        assert (folder / name).read_bytes() == (ROOT / name).read_bytes()


def test_make_fails_where_it_finds_no_image_to_pin(folder: Path) -> None:
    for name in ("Dockerfile", "docker-compose.yml"):
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(re.sub("^(FROM| +image:)", r"\1\t", text, flags=re.MULTILINE), encoding="utf-8")

    made = make("pin-images", folder, PATH=engine(folder, f"sha256:{'7' * 64}"))

    assert made.returncode != 0
    assert "no image was found" in made.stderr


# ---- Dockerfile, as far as it can be held true without a container engine ----


STAGES = dict(re.findall(r"^FROM \S+ AS (\w+)\n(.*?)(?=^FROM |\Z)", DOCKERFILE, re.DOTALL | re.MULTILINE))
"""Instructions by target, in order."""


def test_without_a_target_the_image_with_airflow_is_built_and_docker_compose_names_none() -> None:
    assert list(STAGES) == ["cli", "airflow"]
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    assert {service["build"] for service in services.values() if "build" in service} == {"."}


def test_airflow_is_the_slim_image_of_the_release_that_is_locked() -> None:
    lock = (ROOT / "requirements-image.lock").read_text(encoding="utf-8")
    (release,) = re.findall(r"^apache-airflow==(\S+)", lock, re.MULTILINE)
    assert f"\nFROM apache/airflow:slim-{release}-python3.13 AS airflow\n" in DOCKERFILE
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


# ---- deploy/helm/values.yaml, as far as it can be held true without a Kubernetes and the chart ----


VALUES = yaml.safe_load((ROOT / "deploy/helm/values.yaml").read_text(encoding="utf-8"))

HOW_TO = (ROOT / "docs/how-to/run-in-airflow.md").read_text(encoding="utf-8")


def test_it_runs_the_image_of_the_dockerfile_and_says_the_release_of_its_airflow() -> None:
    assert VALUES["defaultAirflowRepository"].endswith("/topicops-airflow")
    assert f"apache/airflow:slim-{VALUES['airflowVersion']}-python3.13" in DOCKERFILE


def test_one_volume_for_all_services_holds_the_home() -> None:
    (volume,), (mount,) = VALUES["volumes"], VALUES["volumeMounts"]
    variables = {variable["name"]: variable["value"] for variable in VALUES["env"]}
    assert volume["name"] == mount["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == "topicops-home"
    assert variables["TOPICOPS_HOME"].startswith(f"{mount['mountPath']}/")
    assert f"mkdir -m 0700 {mount['mountPath']}" in DOCKERFILE


def test_each_value_of_a_variable_is_a_text_as_kubernetes_wants_it() -> None:
    assert all(isinstance(variable["value"], str) for variable in VALUES["env"])


def test_no_secret_is_in_the_file() -> None:
    assert all(set(entry) == {"envName", "secretName", "secretKey"} for entry in VALUES["secret"])
    assert VALUES["data"] == {"metadataSecretName": "airflow-metadata"}
    assert not VALUES.keys() & {"fernetKey", "apiSecretKey", "jwtSecret", "webserverSecretKey"}


def test_the_page_names_each_secret_and_each_claim_that_must_be_there() -> None:
    names = {VALUES["volumes"][0]["persistentVolumeClaim"]["claimName"], *VALUES["data"].values()}
    names |= {entry["secretName"] for entry in VALUES["secret"]}
    names |= {VALUES[name] for name in ("fernetKeySecretName", "apiSecretKeySecretName", "jwtSecretName")}
    assert {name for name in names if name not in HOW_TO} == set()


@pytest.mark.airflow
def test_dags_and_topics_come_from_a_bundle_that_takes_these_arguments_and_its_connection_is_a_secret() -> None:
    from airflow.providers.git.bundles.git import GitDagBundle

    (bundle,) = VALUES["dagProcessor"]["dagBundleConfigList"]
    known = {*inspect.signature(GitDagBundle.__init__).parameters, "refresh_interval"}
    assert bundle["classpath"] == f"{GitDagBundle.__module__}.{GitDagBundle.__name__}"
    assert set(bundle["kwargs"]) <= known
    assert f"AIRFLOW_CONN_{bundle['kwargs']['git_conn_id'].upper()}" in {e["envName"] for e in VALUES["secret"]}


def test_all_that_must_be_filled_in_is_in_angle_brackets() -> None:
    assert re.findall(r"<(\w+)>", yaml.safe_dump(VALUES)) == ["registry"]

"""deploy/helm/values.yaml, as far as it can be held true without a Kubernetes and the chart."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
VALUES = yaml.safe_load((ROOT / "deploy/helm/values.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
HOW_TO = (ROOT / "docs/how-to/run-in-airflow.md").read_text(encoding="utf-8")


def test_it_runs_the_image_of_the_dockerfile_and_says_the_release_of_its_airflow() -> None:
    assert VALUES["defaultAirflowRepository"].endswith("/topicops-airflow")
    assert f"apache/airflow:slim-{VALUES['airflowVersion']}-python3.11" in DOCKERFILE


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

"""Where Spark runs: each form of the settings and of a connection, and no secret in what is said about them."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping

import pytest

from topicops.edges.connections.lookup import from_environment
from topicops.features.spark.edges import session
from topicops.features.spark.settings import (
    CONF_SETTING,
    MEMORY_SETTING,
    SETTING,
    SparkKind,
    masked,
    spark_kind,
    spark_place,
    without_secrets,
)
from topicops.model.errors import TopicopsError, UsageError

SECRET = "hunter2SECRET"


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("local", "local"),
        ("local[*]", "local"),
        ("local[2]", "local"),
        ("local-cluster[2,1,1024]", "cluster"),
        ("spark://master:7077", "cluster"),
        ("yarn", "cluster"),
        ("k8s://https://api:6443", "cluster"),
        ("sc://spark:15002/;token=x", "connect"),
        ("local[]", None),
        ("local[two]", None),
        ("spark", None),
        ("mesos://old:5050", None),
        ("sc://", None),
    ],
)
def test_the_setting_names_where_spark_runs(setting: str, kind: SparkKind | None) -> None:
    assert spark_kind(setting) == kind


@pytest.mark.parametrize(
    ("address", "servers"),
    [
        ("spark://h1:7077,h2:7078", (("h1", 7077), ("h2", 7078))),
        ("spark://h1,[::1]:7078", (("h1", 7077), ("::1", 7078))),
        ("sc://host", (("host", 15002),)),
        ("sc://[::1]/;use_ssl=true", (("::1", 15002),)),
        ("k8s://https://api:6443", ()),
        ("yarn", ()),
        ("local[2]", ()),
    ],
)
def test_masters_and_connect_servers_can_be_asked_before_spark_starts(
    address: str, servers: tuple[tuple[str, int], ...]
) -> None:
    assert spark_place(address, from_environment).servers == servers


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("sc://host:1/;use_ssl=true;token=a/b@c;user_id=ann", None),
        ("sc://host:1/;use_ssl=true;token=a/b;user_id=ann", "sc://host:1/;use_ssl=true;token=***/***;user_id=ann"),
        (f"sc://host:1/;x-key={SECRET}", "sc://host:1/;***"),
        (f"sc://host:1?token={SECRET}", "sc://host:1?token=***"),
        (f"cs://host:1/;token={SECRET}", "cs://host:1/;token=***"),
        (f"sc:/host:1/;token={SECRET}", None),
        (f"sc://ann:{SECRET}@host:1", None),
        (f"sc://ann:{SECRET};x@host:1", None),
        (f"spark://ann:{SECRET}@master:7077", None),
        (f"k8s://https://ann:{SECRET}@api:6443", None),
        ("k8s://https://api:6443", "k8s://https://api:6443"),
        ("spark://h1:7077,h2:7078", "spark://h1:7077,h2:7078"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        (SECRET, None),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(address: str, shown: str | None) -> None:
    assert masked(address) == (shown or "*** (not shown: it may hold a secret)")


URLS = (
    f"sc://127.0.0.1:1/;token={SECRET}",
    f"sc://127.0.0.1:1/;token={SECRET};use_ssl=true",
    f"sc://127.0.0.1:1/;token=a={SECRET}",
    f"sc://127.0.0.1:1/{SECRET}",
    f"sc://127.0.0.1:1/;{SECRET}",
    f"sc://127.0.0.1:1/;x-api-key={SECRET}",
    f"sc://127.0.0.1:1?token={SECRET}",
    f"sc://127.0.0.1:one/;token={SECRET}",
    f"sc://ann:{SECRET}@127.0.0.1:1",
    f"sc:/127.0.0.1:1/;token={SECRET}",
    f"cs://127.0.0.1:1/;token={SECRET}",
    f"SC://127.0.0.1:1/;token={SECRET}",
    f"spark://ann:{SECRET}@127.0.0.1:1",
    f"spark://127.0.0.1:1/{SECRET}",
    f"k8s://https://ann:{SECRET}@127.0.0.1:1",
    f"local[{SECRET}]",
    f"token={SECRET}",
    f"connection:{SECRET}?",
)


def everything_said(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> str:
    """Return what an error of ``spark_session`` says, with its whole traceback."""
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    try:
        place = spark_place(None, from_environment)
        assert SECRET not in repr(place)
        with session.spark_errors(place.named):
            session._require_server(place)
            raise OSError(f"Spark repeats {place.address} and {dict(place.conf)}")
    except TopicopsError as error:
        return "".join(traceback.format_exception(error, limit=0, chain=True))


@pytest.mark.parametrize("url", URLS)
def test_no_form_of_the_setting_shows_a_secret(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = everything_said(monkeypatch, {SETTING: url})

    assert SETTING in said
    assert SECRET not in said


CONNECTIONS: Mapping[str, object] = {
    "a token": {"conn_type": "spark_connect", "host": "127.0.0.1", "port": 1, "login": "ann", "password": SECRET},
    "a token by URI": f"spark-connect://ann:{SECRET}@127.0.0.1:1/?use_ssl=true",
    "a login in the host": {"conn_type": "spark_connect", "host": f"ann:{SECRET}@127.0.0.1", "port": 1},
    "a token in the host": {"conn_type": "spark_connect", "host": f"127.0.0.1:1/;token={SECRET}"},
    "an unknown extra": {"conn_type": "spark_connect", "host": "127.0.0.1", "extra": {"token": SECRET}},
    "a password of a store": {
        "conn_type": "spark",
        "host": "spark://127.0.0.1",
        "port": 1,
        "extra": {"spark.hadoop.fs.s3a.secret.key": SECRET},
    },
    "an account key": {
        "conn_type": "spark",
        "host": "yarn",
        "extra": {"queue": "root.default", "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": SECRET},
    },
    "a login in a master": {"conn_type": "spark", "host": f"spark://ann:{SECRET}@127.0.0.1:1"},
    "a login in a cluster's address": {"conn_type": "spark", "host": f"k8s://https://ann:{SECRET}@127.0.0.1:1"},
    "another type": {"conn_type": "http", "host": SECRET, "password": SECRET},
    "a value that is no text": {"conn_type": "spark", "host": "yarn", "extra": {"spark.password": [SECRET]}},
    "no host": {"conn_type": "spark_connect", "password": SECRET},
}


@pytest.mark.parametrize("kind", CONNECTIONS)
def test_no_form_of_a_connection_shows_a_secret(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = CONNECTIONS[kind]
    text = written if isinstance(written, str) else json.dumps(written)

    said = everything_said(monkeypatch, {SETTING: "connection:spark_marked", "AIRFLOW_CONN_SPARK_MARKED": text})

    assert f"{SETTING}=connection:spark_marked" in said
    assert SECRET not in said


@pytest.mark.parametrize(
    ("connection", "address", "conf"),
    [
        pytest.param(
            {"conn_type": "spark", "host": "yarn", "extra": {"queue": "root.default"}},
            "yarn",
            {"spark.yarn.queue": "root.default"},
            id="Airflow's own spark_default",
        ),
        pytest.param(
            {"conn_type": "spark", "host": "spark://master", "port": 7077}, "spark://master:7077", {}, id="a master"
        ),
        pytest.param("spark://master:7077", "spark://master:7077", {}, id="a master by URI"),
        pytest.param({"conn_type": "spark", "host": "fd00::2", "port": 7077}, "spark://[fd00::2]:7077", {}, id="IPv6"),
        pytest.param("spark://h1%3A7077%2Ch2%3A7077", "spark://h1:7077,h2:7077", {}, id="two masters by URI"),
        pytest.param("spark://yarn", "yarn", {}, id="YARN by URI"),
        pytest.param(
            {
                "conn_type": "spark",
                "host": "k8s://https://api",
                "port": 6443,
                "extra": {"namespace": "jobs", "spark.executor.instances": 4},
            },
            "k8s://https://api:6443",
            {"spark.kubernetes.namespace": "jobs", "spark.executor.instances": "4"},
            id="Kubernetes",
        ),
        pytest.param(
            {
                "conn_type": "spark",
                "host": "local[2]",
                "extra": {"spark-binary": "spark-submit", "deploy-mode": "client"},
            },
            "local[2]",
            {},
            id="this machine",
        ),
        pytest.param(
            {"conn_type": "spark_connect", "host": "sc://spark", "port": 15002},
            "sc://spark:15002/",
            {},
            id="Airflow's own spark_connect_default",
        ),
        pytest.param(
            {
                "conn_type": "spark_connect",
                "host": "spark",
                "login": "ann",
                "password": "a/b;c",
                "extra": {"use_ssl": True, "spark.sql.ansi.enabled": False},
            },
            "sc://spark/;user_id=ann;token=a%2Fb%3Bc;use_ssl=true",
            {"spark.sql.ansi.enabled": "false"},
            id="Connect with a login",
        ),
    ],
)
def test_a_connection_of_airflows_types_names_where_spark_runs(
    connection: object, address: str, conf: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = connection if isinstance(connection, str) else json.dumps(connection)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", text)

    place = spark_place("connection:spark_default", from_environment)

    assert (place.address, place.conf) == (address, conf)
    assert place.named.startswith("TOPICOPS_SPARK=connection:spark_default (")


def test_settings_beside_the_address_win_over_the_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"spark.executor.memory": "1g", "queue": "slow"}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}))
    monkeypatch.setenv(CONF_SETTING, '{"spark.executor.memory": "2g", "spark.dynamicAllocation.enabled": true}')
    monkeypatch.setenv(MEMORY_SETTING, "4g")

    place = spark_place("connection:spark_default", from_environment)

    assert place.memory == "4g"
    assert place.conf == {
        "spark.executor.memory": "2g",
        "spark.yarn.queue": "slow",
        "spark.dynamicAllocation.enabled": "true",
    }


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (MEMORY_SETTING, "lots", "TOPICOPS_SPARK_MEMORY=lots: write a number and k, m or g, for example 4g"),
        (MEMORY_SETTING, "4", "write a number and k, m or g"),
        (CONF_SETTING, "spark.executor.memory=2g", "is no JSON object"),
        (CONF_SETTING, '{"executor": 1}', "names of Spark begin with spark."),
        (CONF_SETTING, '{"spark.x": [1]}', "spark.x must be text, a number or a boolean"),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_sentence(
    name: str, text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(UsageError) as caught:
        spark_place("local[2]", from_environment)
    assert said in str(caught.value)


def test_a_secret_that_spark_repeats_in_another_way_is_masked() -> None:
    spark_place("sc://host:1/;token=pass%2Fword%3D", from_environment)

    assert without_secrets("token=pass%2Fword%3D means pass/word=") == "token=*** means ***"

"""What topicops sets in every session, and which settings of a user it refuses."""

from __future__ import annotations

import json

import pytest

from topicops.edges.connections.lookup import from_environment
from topicops.features.spark.edges.session_settings import require_effective, require_known, settings_for
from topicops.features.spark.settings import SparkPlace, spark_place
from topicops.model.errors import UsageError

KNOWN = {"spark.sql.session.timeZone", "spark.executor.memory", "spark.sql.files.maxPartitionBytes"}


def place(setting: str, monkeypatch: pytest.MonkeyPatch, **conf: object) -> SparkPlace:
    monkeypatch.setenv("TOPICOPS_SPARK_CONF", json.dumps(conf))
    return spark_place(setting, from_environment)


@pytest.mark.parametrize(
    ("rows", "partitions", "adaptive", "compiled"),
    [
        (0, "2", "true", "true"),
        (1, "2", "false", "false"),
        (20_000, "2", "false", "false"),
        (20_001, "2", "false", "true"),
        (150_000, "3", "false", "true"),
        (1_000_000, "20", "true", "true"),
    ],
)
def test_speed_follows_the_number_of_rows(rows: int, partitions: str, adaptive: str, compiled: str) -> None:
    found = settings_for(rows)
    assert found["spark.sql.shuffle.partitions"] == partitions
    assert found["spark.sql.adaptive.enabled"] == adaptive
    assert found["spark.sql.codegen.wholeStage"] == compiled
    assert found["spark.sql.autoBroadcastJoinThreshold"] == ("10MB" if adaptive == "true" else "-1")


@pytest.mark.parametrize("setting", ["local[2]", "spark://127.0.0.1:1", "sc://127.0.0.1:1"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("spark.sql.session.timeZone", "topicops sets it for every run"),
        ("spark.sql.ansi.enabled", "topicops sets it for every run"),
        ("spark.sql.caseSensitive", "topicops sets it for every run"),
        ("spark.sql.shuffle.partitions", "topicops sets it from the number of rows"),
        ("spark.sql.adaptive.enabled", "topicops sets it from the number of rows"),
        ("spark.master", "TOPICOPS_SPARK says where Spark runs"),
    ],
)
def test_what_topicops_overrides_is_refused_everywhere(
    setting: str, name: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError) as caught:
        require_effective(place(setting, monkeypatch, **{name: "x"}))
    assert str(caught.value) == (
        f"TOPICOPS_SPARK={setting}: {name} has no effect: {why}; remove it from TOPICOPS_SPARK_CONF"
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("spark.executor.memory", "Spark runs on this machine alone"),
        ("spark.yarn.queue", "Spark runs on this machine alone"),
        ("spark.kerberos.keytab", "Spark runs on this machine alone"),
        ("spark.submit.pyFiles", "Spark runs on this machine alone"),
        ("spark.driver.memory", "TOPICOPS_SPARK_MEMORY gives the driver's memory"),
        ("spark.jars.packages", "the driver's Java process has started by then"),
        ("spark.local.dir", "the driver writes into a folder of its own, below TMPDIR"),
    ],
)
def test_what_does_nothing_on_this_machine_is_refused_there_alone(
    name: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=f": {name} has no effect: {why}; "):
        require_effective(place("local[*]", monkeypatch, **{name: "x"}))
    require_effective(place("spark://127.0.0.1:1", monkeypatch, **{name: "x"}))


def test_a_setting_that_has_an_effect_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    require_effective(place("local[*]", monkeypatch, **{"spark.sql.files.maxPartitionBytes": "1m"}))


def test_a_mistyped_name_is_refused_with_the_one_that_it_looks_like(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UsageError, match=r"knows no setting spark\.executor\.memry; if you mean spark\.executor\.memory"
    ):
        require_known(place("spark://127.0.0.1:1", monkeypatch, **{"spark.executor.memry": "1g"}), KNOWN)


def test_a_name_of_a_jar_or_of_ones_own_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"spark.hadoop.fs.s3a.access.key": "a", "spark.databricks.delta.retry": "b", "spark.executor.memory": "1g"}
    require_known(place("spark://127.0.0.1:1", monkeypatch, **own), KNOWN)


def test_an_option_of_what_a_known_setting_names_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"spark.sql.catalog.spark_catalog"}
    require_known(place("local[*]", monkeypatch, **{"spark.sql.catalog.spark_catalog.type": "hive"}), known)

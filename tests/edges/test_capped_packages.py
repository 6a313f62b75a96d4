"""Why some packages have an upper bound: we use what they do not promise to keep.

Whoever raises a bound runs this file, and the tests of the folder that uses the name, with the new release first.
"""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSIDE = {
    "kazoo": ("kazoo.client:KazooClient._call", "kazoo.protocol.serialization:MultiHeader"),
    "kafka-python": (
        "kafka.net.compat:KafkaNetClient",
        "kafka.net.sasl.oauth:SaslMechanismOAuth.receive",
        "kafka.protocol.broker_version_data",
    ),
    "pyspark": (
        "pyspark.java_gateway:launch_gateway",
        "pyspark.serializers:UTF8Deserializer.loads",
        "pyspark.serializers:read_int",
        "pyspark.sql.connect.client.retries:DefaultPolicy",
        "pyspark.sql.connect.conf:RuntimeConf._set_all",
        "pyspark.sql.pandas.types:from_arrow_schema",
        "pyspark.testing.utils",
    ),
    "pyspark-client": (),  # the same modules, without those of Java
    "apache-airflow": (),  # `airflow/test_airflow_inside.py` looks for each
}
"""Modules, and names in them, by package."""
MARKS = {"pyspark": pytest.mark.edges}


def capped_packages() -> set[str]:
    declared = [
        *PROJECT["dependencies"],
        *(need for needs in PROJECT["optional-dependencies"].values() for need in needs),
    ]
    others = [need for need in declared if not need.startswith(PROJECT["name"])]
    return {re.split(r"[\[<>=~! ]", need)[0] for need in others if "<" in need or "==" in need}


def test_a_package_has_an_upper_bound_only_where_we_use_its_inside() -> None:
    assert capped_packages() == INSIDE.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(package, ())) for package, names in INSIDE.items() for name in names]
)
def test_the_inside_that_we_use_is_there(name: str) -> None:
    module, _, path = name.partition(":")
    found: object = import_module(module)
    for attribute in path.split(".") if path else ():
        found = getattr(found, attribute)

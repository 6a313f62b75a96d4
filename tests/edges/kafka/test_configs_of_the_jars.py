"""The edges of each topic config on the class of each release that brokers ask, from its jars, and in ``validate``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from py4j import java_gateway, protocol
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from fixtures.config_edges import codes_of, edge_values
from fixtures.summaries import CONFIG_EDGES
from topicops.features.shared.java import find_java, pyspark_jars
from topicops.model.release import ONE_MESSAGE_FORMAT, Release
from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.topic_config import AS_TOTAL, THROTTLE_LISTS, TOPIC_CONFIGS
from topicops_local.jars import kafka_jars, pinned_versions

CLASSES = ("org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig")
"""Since Kafka 3.5, and before."""


class LogConfig:
    """Kafka's class of one version, from its jars; one JVM has those of all versions."""

    def __init__(self, version: str) -> None:
        self._jvm: Any = _gateway().jvm
        its_class = self._load(version)
        methods = [(method.getName(), method.getParameterCount(), method) for method in its_class.getMethods()]
        [self._validate] = [method for name, parameters, method in methods if (name, parameters) == ("validate", 1)]
        [self._read] = [method for name, _, method in methods if name == "fromProps"]
        self.name: str = its_class.getName()

    def takes(self, config: str, value: str) -> bool:
        """Return whether brokers take the value, and can then open the topic's logs."""
        properties = self._jvm.java.util.Properties()
        properties.setProperty(config, value)
        others = self._jvm.java.util.HashMap()
        if config.startswith("local.") and value != str(AS_TOTAL):  # which 3.0 to 3.5 compare with the total
            others.put(config.removeprefix("local."), value)
        return self._works(self._validate, properties) and self._works(self._read, others, properties)

    def _works(self, method: Any, *arguments: object) -> bool:
        with py4js_own_errors():
            try:
                method.invoke(None, self._array(self._jvm.java.lang.Object, arguments))
            except Py4JJavaError:
                return False
        return True

    def _load(self, version: str) -> Any:
        urls = [self._jvm.java.io.File(str(jar)).toURI().toURL() for jar in kafka_jars(version)]
        parent = self._jvm.java.lang.ClassLoader.getPlatformClassLoader()
        loader = self._jvm.java.net.URLClassLoader(self._array(self._jvm.java.net.URL, urls), parent)
        with py4js_own_errors():
            for name in CLASSES:
                try:
                    return loader.loadClass(name)
                except Py4JJavaError:  # this version has the other one
                    continue
        raise LookupError(f"Kafka {version} has none of {', '.join(CLASSES)}")

    def _array(self, kind: Any, items: Any) -> Any:
        made = _gateway().new_array(kind, len(items))
        for index, item in enumerate(items):
            made[index] = item
        return made


@contextmanager
def py4js_own_errors() -> Iterator[None]:
    """Spark that ran in this process before has put its own way to read errors in Py4J's place, for its own JVM."""
    sparks = java_gateway.get_return_value
    java_gateway.get_return_value = protocol.get_return_value
    try:
        yield
    finally:
        java_gateway.get_return_value = sparks


@cache
def _gateway() -> JavaGateway:
    """It ends with this process."""
    [py4j] = pyspark_jars().glob("py4j-*.jar")
    return JavaGateway.launch_gateway(
        jarpath=str(py4j), java_path=str(find_java()), javaopts=["-Xmx256m", "-XX:+UseSerialGC"], die_on_exit=True
    )


NOT_FOR_FILES = THROTTLE_LISTS | {"message.format.version"}
"""No file may name them, or not from ``ONE_MESSAGE_FORMAT`` on: only the check of live values speaks of them."""
pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.mark.parametrize("release", pinned_versions(), ids=str)
def test_each_edge_of_each_config_is_judged_as_the_class_of_the_release_judges_it(
    release: Release, record_property: Callable[[str, object], None]
) -> None:
    version = pinned_versions()[release]
    kafka = LogConfig(version)
    edges = [(config.name, value) for config in TOPIC_CONFIGS.values() for value in edge_values(config)]

    taken = {edge: kafka.takes(*edge) for edge in edges}

    assert {edge: not config_problem(*edge, release) for edge in edges} == taken
    of_files = [edge for edge in edges if is_for_files(edge[0], release)]
    assert {edge: not code for edge, code in codes_of(release, of_files).items()} == {e: taken[e] for e in of_files}
    known = len({name for (name, _), is_taken in taken.items() if is_taken})
    record_property(
        CONFIG_EDGES,
        f"Kafka {version}, {kafka.name}: {known} configs, {sum(taken.values())} values taken and "
        f"{len(edges) - sum(taken.values())} refused, all as in the table; {len(of_files)} of them asked of validate",
    )


def is_for_files(name: str, release: Release) -> bool:
    return name not in NOT_FOR_FILES or (name not in THROTTLE_LISTS and release < ONE_MESSAGE_FORMAT)

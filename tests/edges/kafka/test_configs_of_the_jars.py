"""The edges of each topic config on the class of each release that brokers ask, from its jars, and in ``validate``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fixtures.config_edges import codes_of, edge_values
from fixtures.log_config import LogConfig
from fixtures.summaries import CONFIG_EDGES
from topicops.model.release import ONE_MESSAGE_FORMAT, Release
from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.topic_config import THROTTLE_LISTS, TOPIC_CONFIGS
from topicops_local.jars import pinned_versions

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

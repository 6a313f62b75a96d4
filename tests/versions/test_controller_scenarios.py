"""The model of the controller, the simulated cluster and real brokers show the same after each step of a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.controller_scenarios import SCRIPTS, WITHOUT_DELETION, ScenarioCluster, Script, differences
from fixtures.kafka_releases import Brokers, ReleasedCluster, wanted_brokers
from fixtures.scenario_clusters import SETTINGS, ModelCluster, RealCluster, SimulatorCluster
from topicops.model.release import Release

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore:alter_configs has been deprecated"),  # brokers of 1.0 know no other request
]
RELEASES = tuple(wanted_brokers("1.0.2", "3.9.2"))


@pytest.fixture(scope="module", params=RELEASES)
def released(request: pytest.FixtureRequest, fast_folder: Path) -> Iterator[ReleasedCluster]:
    brokers: Brokers = request.param
    with ReleasedCluster.running(brokers, fast_folder / f"scripts-{brokers.name}", **SETTINGS) as cluster:
        yield cluster


def in_memory(release: Release, *, controller: int, deletes_topics: bool = True) -> list[ScenarioCluster]:
    return [
        ModelCluster(release, controller=controller, deletes_topics=deletes_topics),
        SimulatorCluster(release, controller=controller, deletes_topics=deletes_topics),
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_the_model_shows_what_brokers_show_after_each_step(released: ReleasedCluster, script: Script) -> None:
    with RealCluster.of(released) as real:
        script(real)

    for cluster in in_memory(released.release, controller=real.brokers[0]):
        script(cluster)
        found = differences(cluster.moments, real.moments)
        assert not found, "\n".join([type(cluster).__name__, *found])


@pytest.mark.parametrize("brokers", RELEASES)
@pytest.mark.parametrize("script", WITHOUT_DELETION, ids=lambda script: script.__name__)
def test_the_model_shows_what_brokers_show_that_delete_no_topics(
    brokers: Brokers, script: Script, cluster_home: Path
) -> None:
    settings = {**SETTINGS, "delete_topic_enable": "false"}
    with ReleasedCluster.running(brokers, cluster_home, **settings) as released, RealCluster.of(released) as real:
        script(real)

    for cluster in in_memory(released.release, controller=real.brokers[0], deletes_topics=False):
        script(cluster)
        found = differences(cluster.moments, real.moments)
        assert not found, "\n".join([type(cluster).__name__, *found])

"""The model of the controller and real brokers show the same after each step of the same script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.controller_scenarios import SCRIPTS, WITHOUT_DELETION, Script, differences
from fixtures.kafka_releases import Brokers, ReleasedCluster, wanted_brokers
from fixtures.scenario_clusters import SETTINGS, ModelCluster, RealCluster

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


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_the_model_shows_what_brokers_show_after_each_step(released: ReleasedCluster, script: Script) -> None:
    with RealCluster.of(released) as real:
        script(real)
        model = ModelCluster(released.release, controller=real.brokers[0])
        script(model)

    found = differences(model.moments, real.moments)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("brokers", RELEASES)
@pytest.mark.parametrize("script", WITHOUT_DELETION, ids=lambda script: script.__name__)
def test_the_model_shows_what_brokers_show_that_delete_no_topics(
    brokers: Brokers, script: Script, cluster_home: Path
) -> None:
    settings = {**SETTINGS, "delete_topic_enable": "false"}
    with ReleasedCluster.running(brokers, cluster_home, **settings) as released, RealCluster.of(released) as real:
        script(real)
        model = ModelCluster(released.release, controller=real.brokers[0], deletes_topics=False)
        script(model)

    found = differences(model.moments, real.moments)
    assert not found, "\n".join(found)

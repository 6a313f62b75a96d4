"""The wrong cluster, and one that lost too many topics, are refused with both sides named."""

import msgspec
import pytest

from topicops.model.errors import ShrunkenWorldError, UnsupportedTargetError, WrongTargetError
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Cluster, Environment, EnvironmentSpec
from topicops.steps.planning.right_cluster import require_cluster_id, require_not_shrunken

FILE = "topics/environments/prod.yaml"


def environment(cluster_id: str | None) -> Environment:
    cluster = msgspec.convert({"class": "sandbox", "id": cluster_id}, Cluster)
    places = {"cluster.id": Location(FILE, 6)}
    return Environment(name="prod", spec=EnvironmentSpec(cluster=cluster), file=FILE, locations=places)


@pytest.mark.parametrize("expected", [pytest.param("a", id="the same id"), pytest.param(None, id="none named")])
def test_the_cluster_that_is_meant_is_accepted(expected: str | None) -> None:
    require_cluster_id("a", environment(expected))


def test_another_cluster_is_a_wrong_target_that_names_both_ids_and_the_place() -> None:
    with pytest.raises(WrongTargetError, match=r"prod.yaml:6.*cluster meant.*is found") as caught:
        require_cluster_id("found", environment("meant"))
    assert caught.value.exit_status == 8


def test_a_strange_id_reaches_the_message_without_control_characters() -> None:
    with pytest.raises(WrongTargetError) as caught:
        require_cluster_id("a\x1b[31m", environment("meant"))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("now", "last", "percent"),
    [
        pytest.param(0, None, 10, id="no last snapshot"),
        pytest.param(90, 100, 10, id="just the limit"),
        pytest.param(120, 100, 0, id="grown"),
        pytest.param(100, 100, 0, id="the same"),
        pytest.param(0, 0, 0, id="nothing then and now"),
        pytest.param(0, 100, 100, id="a limit that forbids nothing"),
    ],
)
def test_a_world_within_the_limit_is_accepted(now: int, last: int | None, percent: int) -> None:
    require_not_shrunken(now, last, percent)


@pytest.mark.parametrize(
    ("now", "last", "percent"),
    [
        pytest.param(89, 100, 10, id="one over the limit"),
        pytest.param(99, 100, 0, id="one gone and none allowed"),
        pytest.param(0, 1, 10, id="the only one gone"),
    ],
)
def test_a_shrunken_world_is_refused_with_both_numbers(now: int, last: int, percent: int) -> None:
    said = rf"^{now} topics? (is|are) live, {last} were .*\({percent}\)"
    with pytest.raises(ShrunkenWorldError, match=said) as caught:
        require_not_shrunken(now, last, percent)
    assert (caught.value.exit_status, caught.value.code) == (8, "TOP416")


def test_kraft_is_a_wrong_target_too() -> None:
    assert UnsupportedTargetError("ZooKeeper is a copy").exit_status == WrongTargetError("another").exit_status

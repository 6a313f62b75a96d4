"""A plan goes out in requests of one kind, within the environment's limits."""

import msgspec
import pytest

from fakes.changes import create_topic, expand_topic, plan_of, sandbox
from fakes.resting_cluster import RestingCluster
from topicops.model.plans.changes import Change
from topicops.model.plans.plan import GatedChange
from topicops.model.specs.environment import Apply
from topicops.steps.applying.apply import batches


def cut(changes: list[Change], **limits: int) -> list[list[GatedChange]]:
    environment = msgspec.structs.replace(sandbox(), apply=Apply(**limits))
    return list(batches(plan_of(*changes).changes, environment))


@pytest.mark.parametrize(
    ("partitions", "topics_per_request", "partitions_per_request", "sizes"),
    [
        pytest.param([1, 1, 1], 20, 500, [3], id="all in one"),
        pytest.param([1, 1, 1], 2, 500, [2, 1], id="topics"),
        pytest.param([3, 3, 3], 20, 6, [2, 1], id="partitions"),
        pytest.param([1, 9, 1], 20, 5, [1, 1, 1], id="too big goes alone"),
        pytest.param([], 20, 500, [], id="none"),
    ],
)
def test_requests_stay_within_both_limits(
    partitions: list[int], topics_per_request: int, partitions_per_request: int, sizes: list[int]
) -> None:
    changes: list[Change] = [create_topic(f"t{index}", *[(1,)] * count) for index, count in enumerate(partitions)]

    found = cut(changes, topics_per_request=topics_per_request, partitions_per_request=partitions_per_request)

    assert [len(batch) for batch in found] == sizes
    assert [gated.change for batch in found for gated in batch] == changes


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        pytest.param({"topics_per_request": 2}, [2, 2, 1, 1], id="topics"),
        pytest.param({"partitions_per_request": 5}, [2, 2, 1, 1], id="partitions"),
        pytest.param({"partitions_per_request": 1}, [1, 1, 1, 1, 1, 1], id="a larger topic still goes, alone"),
        pytest.param({}, [5, 1], id="one kind a request"),
    ],
)
def test_requests_stay_within_the_environments_limits(limits: dict[str, int], sizes: list[int]) -> None:
    live = RestingCluster().put_topic("t", (1, 2))
    changes: list[Change] = [create_topic(name, (1, 2), (2, 1)) for name in "abcde"]

    assert [len(batch) for batch in cut([*changes, expand_topic(live, (2, 1))], **limits)] == sizes

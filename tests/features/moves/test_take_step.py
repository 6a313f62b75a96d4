"""One step from the outside: which cluster it is made on, behind which lease, and by which files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from fixtures.moves.cluster import MB
from fixtures.moves.mover import Mover, world
from fixtures.simulated import CLUSTER_ID, Simulated
from topicops.features.moves.carrying.step import asked_to_cancel
from topicops.features.moves.carrying.values import Stepped
from topicops.features.moves.record import MOVES, MovesRecord, Stage
from topicops.features.moves.stepping import STEP_WRAPPERS, StepWrappers, take_step
from topicops.model.errors import WrongTargetError


class Story:
    """An environment whose record has a move of ``a`` that no step has begun."""

    def __init__(self, simulated: Simulated) -> None:
        self.simulated = simulated
        self.world: Mover = world({"a": {0: (1,)}, "b": {0: (1,)}}, size=3000.0 * MB)
        for topic in ("a", "b"):
            simulated.workspace.topic(topic, partitions=1, replicationFactor=2)
        self.world.accept("a", {0: (2, 3)})
        self.write(self.world.record)
        self.world.cluster.before_call = lambda _, name: simulated.events.append(name)

    def write(self, record: MovesRecord) -> None:
        run = self.simulated.opened("1")
        MOVES.of(run.home, "local").write(replace(record, cluster_id=CLUSTER_ID))

    @property
    def record(self) -> MovesRecord:
        found = MOVES.of(self.simulated.opened("1").home, "local").read()
        assert found is not None
        return found

    def step(self) -> Stepped | None:
        self.simulated.events.clear()
        return take_step(replace(self.simulated.opened("2"), clock=self.world.cluster.clock))


@pytest.fixture
def story(simulated: Simulated) -> Iterator[Story]:
    found = Story(simulated)
    opened: Any = nullcontext(found.world.cluster)
    token = STEP_WRAPPERS.set(StepWrappers(opened=lambda *_: opened))
    yield found
    STEP_WRAPPERS.reset(token)


def test_a_step_on_another_cluster_than_that_of_the_environment_sends_nothing(story: Story) -> None:
    before = story.record
    story.simulated.workspace.cluster["id"] = "of-another-cluster"

    with pytest.raises(WrongTargetError, match="of-another-cluster"):
        story.step()

    assert story.simulated.events == []
    assert story.record == before


def test_a_step_reads_the_cluster_only_after_it_has_caught_up_with_its_lease(story: Story) -> None:
    story.step()

    assert story.simulated.events[:3] == ["take the lease", "catch up", "listed"]
    assert story.simulated.events[-1] == "give the lease back"
    assert "alter" in story.simulated.events


def test_errors_in_the_file_of_one_topic_stop_only_the_moves_of_it_that_wait(story: Story) -> None:
    story.world.accept("b", {0: (2, 3)})
    story.write(story.world.record)
    story.simulated.workspace.topic("a", partitions=1, replicationFactor="many")

    stepped = story.step()

    assert stepped is not None
    assert [move.topic for move in stepped.record.topics] == ["a", "b"]
    assert stepped.notes == ("a partition 0: not started: its file has errors; `topicops validate` lists them.",)
    assert [found.stage for _, _, found in stepped.record.moving()] == [Stage.ASKED]


def test_what_moves_already_can_be_cancelled_although_its_file_has_errors(story: Story) -> None:
    story.step()
    story.simulated.workspace.topic("a", partitions=1, replicationFactor="many")
    story.write(asked_to_cancel(story.record, ["a"], story.world.cluster.clock.utc()))

    story.step()

    assert [(end.status, end.message) for end in story.record.ended] == [("cancelled", "it was asked for")]
    assert story.record.is_idle

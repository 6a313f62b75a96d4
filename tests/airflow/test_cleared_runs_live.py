"""Tasks of one run tried again, cleared, or run twice at once, with the real steps on a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException
from confluent_kafka.admin import NewPartitions

from fixtures.guarded_broker import GuardedBroker
from fixtures.live import cluster_spec, look
from fixtures.scripted_flow import ScriptedRun, ScriptedTask, context
from fixtures.spec_folder import write_environment, write_topic
from topicops.flow import single_steps
from topicops.flow.engines import DiffEngine
from topicops.flow.runs.run import EnvironmentRun
from topicops.flow.single_steps import Summary
from topicops.on_airflow.plugged import Tools
from topicops.on_airflow.site import Site
from topicops.on_airflow.tasks import changes, planning
from topicops.on_airflow.tasks.opening import XComValue

FIRST = ScriptedTask()
PAUSE = {"state": "paused", "reason": "Not yet.", "until": "2126-01-01T00:00:00Z"}
CLEARED = ScriptedTask(try_number=2, dag_run=ScriptedRun(clear_number=1))


class PlainFlow:
    """The real steps, with a diff that needs no Spark."""

    def diff(self, run: EnvironmentRun, *, engine: DiffEngine) -> Summary:
        return single_steps.diff(run)

    def __getattr__(self, step: str) -> Callable[..., Summary]:
        return getattr(single_steps, step)


@dataclass(frozen=True)
class World:
    site: Site
    home: Path
    broker: GuardedBroker

    def plan(self, task: ScriptedTask = FIRST) -> None:
        for step in (planning.validate, planning.snapshot, planning.diff, planning.plan, planning.gate):
            step(self.site, context(task))

    def send(self, action: str, task: ScriptedTask = FIRST) -> XComValue:
        return changes.pipeline_change(action, self.site, context(task))

    def partitions(self) -> dict[str, int]:
        return {name: topic.partitions for name, topic in look(self.broker.cluster).topics.items() if name[0] != "_"}

    def mutations(self) -> list[str]:
        log = self.home / "audit/local.jsonl"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [f"{line['action']} {line['topic']} {line['outcome']}" for line in map(json.loads, lines)]

    def report(self) -> XComValue:
        changes.verify(self.site, context(FIRST))
        return changes.report(self.site, context(FIRST))


@pytest.fixture
def world(guarded_broker: GuardedBroker, tmp_path: Path, topicops_home: Path) -> Iterator[World]:
    """One topic is to be created, another to be expanded; nobody has to log in."""
    topics = tmp_path / "topics"
    write_environment(topics, "local", cluster=cluster_spec(guarded_broker.cluster))
    write_topic(topics, "again.coming", spec={"keyed": False})
    write_topic(topics, "again.growing", spec={"keyed": False, "partitions": 2})
    guarded_broker.make("again.growing")
    yield World(Site(environment="local", topics=topics, tools=Tools(flow=PlainFlow())), topicops_home, guarded_broker)
    guarded_broker.clear()


@pytest.mark.soak
def test_a_task_that_is_tried_again_after_its_change_took_effect_sends_nothing_more(world: World) -> None:
    world.plan()
    world.send("create")

    again = world.send("create", ScriptedTask(try_number=2))

    assert (again["done"], again["already so"]) == (0, 1)
    assert world.mutations() == ["create again.coming done"]
    assert world.report()["ok"]


def test_a_task_that_runs_twice_at_once_changes_the_cluster_once_and_both_end_well(world: World) -> None:
    world.plan()

    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda n: world.send("create", ScriptedTask(try_number=n)), (1, 2)))

    assert sorted((facts["done"], facts["already so"]) for facts in both) == [(0, 1), (1, 0)]
    assert world.mutations() == ["create again.coming done"]
    assert world.partitions() == {"again.coming": 1, "again.growing": 1}


def test_a_cleared_change_task_refuses_a_topic_that_moved_since_the_plan(world: World) -> None:
    world.plan()
    world.broker.admin.create_partitions([NewPartitions("again.growing", 5)])["again.growing"].result(60)

    with pytest.raises(AirflowFailException, match="expand: 1 refused"):
        world.send("expand", CLEARED)

    assert world.mutations() == []
    assert world.partitions() == {"again.growing": 5}


@pytest.mark.parametrize(
    "rewrite",
    [
        pytest.param(
            lambda folder: write_topic(folder, "again.coming", spec={"keyed": False, "partitions": 3}), id="it"
        ),
        pytest.param(lambda folder: (folder / "tests/again.coming.yaml").unlink(), id="away"),
        pytest.param(
            lambda folder: write_topic(folder, "again.coming", spec={"keyed": False}, lifecycle=PAUSE), id="is paused"
        ),
    ],
)
def test_a_cleared_change_task_refuses_a_topic_whose_file_was_rewritten_since_the_plan(
    world: World, rewrite: Callable[[Path], object]
) -> None:
    world.plan()
    rewrite(world.site.topics)

    with pytest.raises(AirflowFailException, match="create: 1 refused"):
        world.send("create", CLEARED)

    assert world.mutations() == []
    assert world.partitions() == {"again.growing": 1}
    assert world.send("expand", CLEARED)["done"] == 1  # its file is as it was


@pytest.mark.soak
def test_a_run_that_is_cleared_as_a_whole_plans_what_is_due_by_then(world: World) -> None:
    world.plan()
    world.send("create")
    write_topic(world.site.topics, "again.growing", spec={"keyed": False, "partitions": 3})

    world.plan(CLEARED)
    nothing, expanded = world.send("create", CLEARED), world.send("expand", CLEARED)

    assert (nothing["done"], nothing["already so"], expanded["done"]) == (0, 0, 1)
    assert world.mutations() == ["create again.coming done", "expand again.growing done"]
    assert world.partitions() == {"again.coming": 1, "again.growing": 3}
    assert world.report()["summary"] == "Applied and verified: 1 done."

"""What apply hands over is recorded, or refused with what is in the way; on a simulated cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from fakes.builders import desired_of, desired_topic
from fakes.changes import audit_origin
from fakes.fake_ports import FakeLease
from fixtures.moves.cluster import MB
from fixtures.moves.mover import world
from topicops.edges.home.audit_files import read_audit_log
from topicops.features.moves.carrying.values import MoveSettings
from topicops.features.moves.record import MOVES, MovesRecord, Stage
from topicops.features.moves.stepping import STEP_WRAPPERS, StepWrappers, kafka_mover, settings_of
from topicops.flow.runs.access import Access
from topicops.model.errors import ArtifactError, ClusterError
from topicops.model.plans.changes import MoveReason, ReassignTopic
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Begun, LiveReader, Mover
from topicops.model.runs.results import OutcomeStatus
from topicops.model.specs.environment import Cluster, Environment, EnvironmentSpec


@dataclass
class Story:
    """A mover of one apply, and the simulated cluster that it opens."""

    home: Path
    draining: tuple[int, ...] = ()
    lacks: str = ""
    is_silent: bool = False
    """Whether the brokers answer no question of a step."""
    approvers: Mapping[str, str] = field(default_factory=dict)
    lease: FakeLease = field(default_factory=FakeLease)
    left_out: frozenset[str] = frozenset()
    """Topics whose files have errors."""

    def __post_init__(self) -> None:
        self.there = world({"a": {0: (1,)}, "b": {0: (1,)}}, size=3000.0 * MB)
        self.cluster = cast("Any", self.there.cluster)
        self.cluster_id = "simulated"

    def change(self, topic: str = "a", why: MoveReason = MoveReason.FACTOR) -> GatedChange:
        gated = self.there.accept(topic, {0: (2, 3)})
        return replace(gated, change=replace(cast("ReassignTopic", gated.change), why=why))

    @property
    def mover(self) -> Mover:
        cluster = Cluster(cluster_class="sandbox", draining=self.draining)
        environment = Environment(name="local", spec=EnvironmentSpec(cluster=cluster), file="local.yaml")
        access = Access(
            environment=environment, run="cli/2", home=self.home, connections=lambda _: pytest.fail("asked")
        )
        described = (desired_topic(name, 1, replication_factor=2) for name in {"a", "b"} - self.left_out)
        return kafka_mover(
            access,
            clock=self.cluster.clock,
            reader=cast(
                "LiveReader",
                SimpleNamespace(cluster_id=lambda: self.cluster_id, brokers=lambda: self.cluster.brokers_by_id),
            ),
            lease=self.lease,
            desired=replace(desired_of(*described), left_out=self.left_out),
            approvers=self.approvers,
            origin=replace(audit_origin(), principals={"reassign": "User:mover"}),
        )

    @property
    def record(self) -> MovesRecord | None:
        return MOVES.of(self.home, "local").read()

    def begin(self, *changes: GatedChange) -> dict[str, Begun]:
        begun = self.mover.begin(changes)
        return {gated.change.topic: begun[gated.digest] for gated in changes}

    def opened(self) -> Any:
        story = self

        class Opened:
            def __getattr__(self, name: str) -> Any:
                if story.is_silent:
                    raise ClusterError("no broker answers")
                return getattr(story.cluster, name)

            def require_rights(self, topics: object) -> None:
                if story.lacks:
                    raise ClusterError(f"User:mover lacks {story.lacks} (TOP804)")

        return nullcontext(Opened())


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    found = Story(tmp_path)
    token = STEP_WRAPPERS.set(StepWrappers(opened=lambda *_: found.opened()))
    yield found
    STEP_WRAPPERS.reset(token)


def test_what_was_accepted_is_recorded_and_begins_at_once(story: Story) -> None:
    change = story.change()

    assert story.begin(change)["a"] == Begun(OutcomeStatus.MOVING, sent=True)

    assert story.record is not None
    assert [(move.topic, move.run, move.digest) for move in story.record.topics] == [("a", "cli/2", change.digest)]
    lines = read_audit_log(story.home / "audit", "local").lines
    assert [(line.request["what"], line.topic, line.outcome) for line in lines] == [("start", "a", "moving")]


def test_the_lines_of_a_step_name_who_approved_each_move(story: Story) -> None:
    approved, unasked = story.change("a"), replace(story.change("b"), digest="b")
    story.approvers = {approved.digest: "ann"}

    story.begin(approved, unasked)

    lines = read_audit_log(story.home / "audit", "local").lines
    assert {(line.topic, line.approver) for line in lines if line.topic} == {("a", "ann"), ("b", None)}


def test_a_right_that_is_missing_is_named_before_anything_is_recorded(story: Story) -> None:
    story.lacks = "Alter on the cluster"

    with pytest.raises(ClusterError, match="lacks Alter on the cluster"):
        story.mover.begin([story.change()])

    assert story.record is None


def test_what_fails_after_the_recording_leaves_the_move_to_the_next_step(story: Story) -> None:
    story.is_silent = True

    begun = story.begin(story.change())["a"]

    assert begun.status is OutcomeStatus.MOVING
    assert begun.message == "accepted; its first step ended early: no broker answers; the next step goes on"
    assert story.record is not None
    assert len(story.record.topics) == 1


def test_a_topic_with_an_earlier_move_is_refused_and_another_one_is_accepted(story: Story) -> None:
    earlier = story.change()
    story.begin(earlier)

    begun = story.begin(replace(earlier, digest="another"), story.change("b"))

    assert begun["b"].status is OutcomeStatus.MOVING
    assert begun["a"] == Begun(
        OutcomeStatus.REFUSED,
        "a has an earlier move, of cli/2; wait until it has ended, or cancel it: topicops moves --cancel a",
    )


def test_an_earlier_move_waits_while_its_file_has_errors_that_do_not_stop_this_apply(story: Story) -> None:
    story.is_silent = True
    story.begin(story.change("a"))
    story.is_silent, story.left_out = False, frozenset({"a"})

    story.begin(story.change("b"))

    assert story.record is not None
    assert {move.topic: move.partitions[0].stage for move in story.record.topics} == {
        "a": Stage.ACCEPTED,
        "b": Stage.ASKED,
    }
    assert story.record.notes == ("a partition 0: not started: its file has errors; `topicops validate` lists them.",)


def test_a_second_try_of_an_apply_finds_what_the_first_one_recorded(story: Story) -> None:
    change = story.change()
    story.begin(change)

    assert story.begin(change)["a"].status is OutcomeStatus.MOVING


@pytest.mark.parametrize(
    ("draining", "drained"), [pytest.param((1, 9), (1,), id="by the file"), pytest.param((), (), id="by the command")]
)
def test_a_drain_knows_which_brokers_the_file_drains(
    story: Story, draining: tuple[int, ...], drained: tuple[int, ...]
) -> None:
    story.draining = draining

    story.begin(story.change(why=MoveReason.DRAIN))

    assert story.record is not None
    assert [move.drained for move in story.record.topics] == [drained]


def test_the_racks_of_the_targets_are_recorded_as_they_are_when_a_move_is_accepted(story: Story) -> None:
    story.cluster.brokers_by_id[3].rack = "r3"

    story.begin(story.change())

    assert story.record is not None
    assert [move.racks for move in story.record.topics] == [{2: None, 3: "r3"}]


def test_the_record_of_another_cluster_is_not_used(story: Story) -> None:
    story.begin(story.change())
    story.cluster_id = "another"

    with pytest.raises(ArtifactError, match=r"is about another cluster, 'simulated'; remove it if that one is gone"):
        story.mover.begin([story.change("b")])


def test_a_lease_that_is_lost_stops_the_first_step_before_its_request(story: Story) -> None:
    story.lease.lose()

    begun = story.begin(story.change())["a"]

    assert begun.message.startswith("accepted; its first step ended early: the lease of this cluster is no longer ours")
    assert "alter" not in story.cluster.calls


def test_an_audit_log_that_cannot_be_continued_stops_a_step_before_it_sends_anything(story: Story) -> None:
    story.begin(story.change())
    [log] = (story.home / "audit").glob("*.jsonl")
    log.write_text("{}\n")
    calls = list(story.cluster.calls)

    begun = story.begin(story.change("b"))["b"]

    assert "its first step ended early" in begun.message
    assert story.cluster.calls == calls


def test_a_step_has_the_limits_of_the_environment() -> None:
    spec = msgspec.convert(
        {
            "cluster": {"class": "sandbox"},
            "limits": {"movesAtOnce": 7, "movesPerBroker": 3},
            "apply": {"throttle": 1000},
            "verify": {"moves": "PT5M"},
        },
        EnvironmentSpec,
    )

    assert settings_of(spec) == MoveSettings(at_once=7, per_broker=3, throttle=1000, stuck_after=timedelta(minutes=5))

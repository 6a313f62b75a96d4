"""Plans that an adversary edits, on real brokers: what no plan of now would run is not sent, and nothing else moves."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
import yaml
from confluent_kafka.admin import NewTopic

from fixtures.adversary import Anew, Case, Edit, Tried, edits_of, is_readable, planned_anew, problems_of
from fixtures.live import cluster_spec, create_topics, look, remove_topics
from fixtures.workspace import Workspace
from topicops.flow.runs.access import PORT_WRAPPERS, PortWrappers
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.ports import Answer, TopicAdmin
from topicops_local.cluster import LocalCluster

TRIES = 50
SHORT = 3
"""How many of them run with every change of the code."""
PARTS = 3
"""In how many long tests the others are."""
LATE = "2099-01-01T00:00:00Z"


class Recorder:
    """The real client, and every change that it was asked to send."""

    def __init__(self, admin: TopicAdmin, sent: list[Change]) -> None:
        self._admin, self._sent = admin, sent

    def cluster_id(self) -> str:
        return self._admin.cluster_id()

    def validate(self, changes: list[Change]) -> object:
        return self._admin.validate(changes)

    def get_ready(self, change: Change) -> None:
        self._admin.get_ready(change)

    def create(self, changes: list[CreateTopic]) -> object:
        self._sent += changes
        return self._admin.create(changes)

    def expand(self, changes: list[ExpandTopic]) -> object:
        self._sent += changes
        return self._admin.expand(changes)

    def configure(self, changes: list[ConfigureTopic]) -> object:
        self._sent += changes
        return self._admin.configure(changes)

    def delete(self, change: DeleteTopic) -> Answer:
        self._sent.append(change)
        return self._admin.delete(change)


@dataclass(frozen=True)
class Story:
    """Topics of a prefix of their own: one to make, to grow, to tune and to delete, and two that nobody may touch."""

    workspace: Workspace
    cluster: LocalCluster
    prefix: str

    def topic(self, word: str) -> str:
        return f"{self.prefix}.{word}"

    def lay_out(self) -> None:
        new = [
            NewTopic(self.topic("grows"), 2, 3),
            NewTopic(self.topic("tuned"), 1, 3, config={"retention.ms": "604800000"}),
            NewTopic(self.topic("goes"), 1, 3),
            NewTopic(self.topic("kept"), 1, 3),
            NewTopic(self.topic("unmanaged"), 1, 3),
        ]
        create_topics(self.cluster.bootstrap_servers, *new)
        space = self.workspace
        space.topic(self.topic("new"), partitions=2, configs={"retention.ms": "1d"})
        space.topic(self.topic("grows"), partitions=4)
        space.topic(self.topic("tuned"), configs={"retention.ms": "1d"})
        space.topic(self.topic("kept"))
        space.tombstone(self.topic("goes"))

    def live(self) -> Mapping[str, LiveTopic]:
        found = look(self.cluster).topics
        return {name: topic for name, topic in found.items() if name.startswith(f"{self.prefix}.")}

    def clear(self) -> None:
        for word in ("new", "grows", "tuned", "kept", "goes"):
            self.workspace.path_of(self.topic(word)).unlink(missing_ok=True)
        remove_topics(self.cluster, self.live())

    def meanwhile(self, random: Random) -> None:
        """In every second story a file or a setting changes after the plan."""
        words: list[Callable[[], object]] = [
            lambda: self.workspace.path_of(self.topic("new")).unlink(),
            lambda: self._edit("goes", lifecycle={"topicIds": {"local": "AAAAAAAAAAAAAAAAAAAAAQ"}}),
            lambda: self._edit("goes", lifecycle={"notBefore": LATE}),
            lambda: self._edit("grows", lifecycle={"state": "paused", "reason": "Incident.", "until": LATE}),
            lambda: self._edit("tuned", spec={"configs": {"retention.ms": "2d"}}),
            lambda: self.workspace.limits.update(deletesPerRun=0),
            lambda: self.workspace.policy.update(protectedTopics=[f"{self.prefix}.*"]),
        ]
        if random.random() < 0.5:
            random.choice(words)()

    def _edit(self, word: str, **sections: Mapping[str, object]) -> None:
        path = self.workspace.path_of(self.topic(word))
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for section, values in sections.items():
            document[section] = {**document.get(section, {}), **values}
        path.write_text(yaml.safe_dump(document), encoding="utf-8")


@dataclass(frozen=True)
class Stage:
    workspace: Workspace
    cluster: LocalCluster
    folder: Path

    def play(self, number: int) -> None:
        """Lay out a story of its own, edit its plan, apply it, judge what was sent, and clear all away."""
        story = Story(self.workspace, self.cluster, f"edited-{number}")
        self.workspace.limits, self.workspace.policy = {}, {}
        story.clear()
        try:
            story.lay_out()
            _apply_edited(story, Random(f"brokers {number}"), self.folder / f"now-{number}")
        finally:
            story.clear()


@pytest.fixture
def stage(local_cluster: LocalCluster, workspace: Workspace, tmp_path: Path) -> Stage:
    workspace.cluster = cluster_spec(local_cluster)
    return Stage(workspace, local_cluster, tmp_path)


@pytest.mark.parametrize("number", range(SHORT))
def test_an_edited_plan_sends_nothing_that_no_plan_of_now_would_run(stage: Stage, number: int) -> None:
    stage.play(number)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_many_edited_plans(stage: Stage, part: int) -> None:
    for number in range(SHORT + part, TRIES, PARTS):
        stage.play(number)


def chosen(honest: str, live: Mapping[str, LiveTopic], random: Random) -> tuple[str, Case]:
    """Return the text of an edited plan that can be read and is not the honest one, and what was done to it."""
    edits: list[Edit] = list(edits_of(honest, (), live))
    of_values = [edit for edit in edits if ".after." in edit[0] or edit[0].startswith("forge")]
    while True:
        some = [random.choice(of_values), *random.sample(edits, random.randint(0, 2))]
        case = Case(story="real brokers", edits=tuple(some), opened=random.random() < 0.5)
        text = case.text(honest)
        if is_readable(text) and text != Case(story="").text(honest):
            return text, case


def _apply_edited(story: Story, random: Random, home: Path) -> None:
    space = story.workspace
    space.policy["unattended"] = random.choice(["notice", "destructive"])
    assert space.plan().status == 0
    file, before = space.folder / "plan.json", story.live()
    text, case = chosen(file.read_text(encoding="utf-8"), before, random)
    file.write_text(text, encoding="utf-8")
    story.meanwhile(random)
    space.write_environment()
    plans: dict[str, Anew | None] = {"local": planned_anew("local", home)}
    document = json.loads(text)
    is_approved = random.random() < 0.5

    sent: list[Change] = []
    token = PORT_WRAPPERS.set(PortWrappers(admin=lambda admin: Recorder(admin, sent)))  # type: ignore[arg-type]
    try:
        ended = space.apply(*(["--approve", document["fingerprint"]] if is_approved else []))
    finally:
        PORT_WRAPPERS.reset(token)

    tried = Tried(ended.status, ended.err, tuple(sent))
    approved = [entry["digest"] for entry in document["changes"]] if is_approved else []
    assert list(problems_of(tried, plans.get, text, approved)) == [], f"{case}\n{ended.err}"
    after = story.live()
    moved = {name for name in before.keys() | after.keys() if _lasting(before, name) != _lasting(after, name)}
    assert moved <= {change.topic for change in tried.sent}, str(case)


def _lasting(topics: Mapping[str, LiveTopic], name: str) -> object:
    """Return what only a change of the topic moves; leaders and ISRs move by themselves."""
    topic = topics.get(name)
    return topic and (topic.identity, topic.assignment, topic.overrides)

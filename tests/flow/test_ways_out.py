"""Every way out that a report prints, when it is followed, changes the situation, until nothing is left to do.

A random cluster and random files give a plan; random faults and hands come in the way of its apply. Then each line
below *Next* is followed by the function for its form; a line that no function is for fails the test.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

import pytest

from fakes.resting_cluster import (
    CONNECTION_LOST,
    CONTROLLER_DIED,
    MUST_WAIT,
    REFUSED_BY_POLICY,
    UNCLEAR_AND_NOT_DONE,
    UNCLEAR_BUT_DONE,
    Fault,
)
from fixtures.adversary import fake_time
from fixtures.simulated import Simulated, outcomes_of
from topicops.flow import reporting, single_steps, whole_runs
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.errors import ExitStatus
from topicops.steps.reporting.run_report import next_steps

FAULTS: tuple[Fault, ...] = (
    CONNECTION_LOST,
    CONTROLLER_DIED,
    MUST_WAIT,
    REFUSED_BY_POLICY,
    UNCLEAR_AND_NOT_DONE,
    UNCLEAR_BUT_DONE,
)
BROKERS = (1, 2, 3)
LONG = 40
"""More requests than one apply sends for a topic: the fault stays until somebody removes it."""
MOST_ROUNDS = 10


class Story:
    """One situation, and a person who does what the report says."""

    def __init__(self, simulated: Simulated, seed: int) -> None:
        self.simulated = simulated
        self.chance = random.Random(seed)
        self.runs = 0
        self.run = self._situation()

    def _situation(self) -> EnvironmentRun:
        workspace, cluster = self.simulated.workspace, self.simulated.cluster
        workspace.policy["unattended"] = self.chance.choice(["safe", "notice", "destructive"])
        workspace.limits["deletesPerRun"] = self.chance.choice([0, 100])
        workspace.limits["replicasPerRun"] = self.chance.choice([6, 3000])
        names = [f"t-{number}" for number in range(self.chance.randint(2, 6))]
        for name in names:
            self._topic(name)
        run = self._planned()
        for name in names:
            if self.chance.random() < 0.4:
                cluster.script(name, *[self.chance.choice(FAULTS)] * self.chance.choice([1, LONG]))
            if self.chance.random() < 0.2:
                self._by_hand(name)
        if self.chance.random() < 0.3:
            cluster.hold_back(self.chance.choice(BROKERS))
        self._apply(run)
        return run

    def _apply(self, run: EnvironmentRun, *, approved: bool = False) -> None:
        self.simulated.apply(run, approved=approved)
        single_steps.verify(run)

    def _topic(self, name: str) -> None:
        workspace, cluster = self.simulated.workspace, self.simulated.cluster
        match self.chance.choice(["create", "expand", "configure", "delete", "shrink"]):
            case "create":
                workspace.topic(name, partitions=self.chance.randint(1, 3))
            case "expand":
                cluster.put_topic(name, (1, 2, 3))
                workspace.topic(name, partitions=self.chance.choice([2, 3, 9]))
            case "configure":
                cluster.put_topic(name, (1, 2, 3))
                workspace.topic(name, configs={"retention.ms": "2h"})
            case "shrink":
                cluster.put_topic(name, (1, 2, 3), (2, 3, 1))
                workspace.topic(name, partitions=1)
            case _:
                cluster.put_topic(name, (1, 2, 3))
                workspace.tombstone(name)

    def _by_hand(self, name: str) -> None:
        """Somebody changes the topic between plan and apply."""
        cluster = self.simulated.cluster
        if name not in cluster.snapshot().topics:
            cluster.put_topic(name, (3, 1, 2))
        elif self.chance.random() < 0.5:
            cluster.add_rows(name, (2, 3, 1))
        else:
            cluster.set_configs(name, {"retention.ms": "1000"})

    def _planned(self) -> EnvironmentRun:
        self.runs += 1
        return self.simulated.planned(str(self.runs))

    def situation(self) -> object:
        """What a person sees: the live topics, how the last run ended, and what it says is next."""
        topics = self.simulated.cluster.snapshot().topics
        live = {name: (topic.assignment, dict(topic.overrides)) for name, topic in topics.items()}
        ended = [(outcome.topic, outcome.status) for outcome in outcomes_of(self.run)]
        return live, ended, self.lines()

    def lines(self) -> list[str]:
        return list(next_steps(reporting.run_report(self.run)))

    def follow(self, line: str) -> None:
        ways = [way for form, way in WAYS.items() if re.fullmatch(form, line)]
        assert len(ways) == 1, f"nobody can follow: {line}"
        ways[0](self)

    def fix_the_reasons(self) -> None:
        for name in self.simulated.cluster.snapshot().topics | dict.fromkeys(f"t-{n}" for n in range(6)):
            self.simulated.cluster.repair(name)

    def nothing(self) -> None:
        """The line only counts; another one says what to do."""

    def plan_again(self) -> None:
        self.run = self._planned()
        self._apply(self.run)

    def approve(self) -> None:
        self._apply(self.run, approved=True)

    def see_to_the_brokers(self) -> None:
        for broker in BROKERS:
            self.simulated.cluster.catch_up(broker)
        self.runs += 1
        run = self.simulated.opened(str(self.runs))
        assert whole_runs.verify_cluster(run).status == ExitStatus.SUCCESS, reporting.render_report(run, "text")
        self.plan_again()

    def merge_another_limit(self) -> None:
        self.simulated.workspace.limits |= {"deletesPerRun": 100, "replicasPerRun": 3000, "expansionFactor": 100}
        self.plan_again()

    def do_what_the_plan_says(self) -> None:
        for blocked in self.run.read_plan().change_set.blocked:
            live = self.simulated.cluster.live(blocked.topic)
            self.simulated.workspace.topic(blocked.topic, partitions=live.partitions)
        self.plan_again()


WAYS: Mapping[str, Callable[[Story], None]] = {
    r"\d+ failed: fix the reason beside each first\.": Story.fix_the_reasons,
    r"\d+ of unknown outcome: see first why the brokers give no clear answer\.": Story.fix_the_reasons,
    r"\d+ refused: the reason stands beside each\.": Story.nothing,
    r"\d+ not sent: the reason stands beside each\.": Story.nothing,
    r"Plan again: trigger topic_pipeline_local\. .*": Story.plan_again,
    r"[^:]+ not healthy: see to the brokers named, then trigger topic_pipeline_local\.": Story.see_to_the_brokers,
    r"\d+ changes? held: answer the question in Airflow, Required Actions\.": Story.approve,
    r"\d+ held by a limit that no approval lifts: merge another limit, or fewer deletes\.": Story.merge_another_limit,
    r"\d+ skipped: a later run takes them up once the reason that the plan gives is gone\.": Story.merge_another_limit,
    r"\d+ blocked: the plan names the way out of each\.": Story.do_what_the_plan_says,
}


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(6, 60))])
def test_every_way_out_that_is_followed_changes_the_situation_until_none_is_left(
    simulated: Simulated, seed: int
) -> None:
    simulated.clock = fake_time()
    story = Story(simulated, seed)
    for _ in range(MOST_ROUNDS):
        lines = story.lines()
        if not lines:
            break
        before = story.situation()
        story.follow(lines[0])
        if lines[0].startswith(tuple("0123456789")) and any(line.startswith("Plan again") for line in lines):
            story.plan_again()
        assert story.situation() != before, (lines, story.lines(), outcomes_of(story.run))
    assert story.lines() == [], outcomes_of(story.run)

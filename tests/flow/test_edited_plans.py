"""Plans that an adversary edits, on a simulated cluster: what no plan of now would run is never sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, islice
from random import Random

import pytest

from fixtures.adversary import (
    KINDS,
    STORIES,
    Case,
    Stage,
    Tried,
    at_random,
    each_edit,
    each_moment,
    play,
    problems_of,
    stage,
)
from topicops.model.plans.changes import ConfigureTopic, CreateTopic
from topicops.model.plans.plan_file import plan_from_json

__all__ = ["stage"]

MIXED = [story for story in STORIES if story.startswith("mixed")]


def problems(stage: Stage, cases: Iterable[Case]) -> list[str]:
    """Of all cases, each with the case; at least one of them sent something."""
    played = [(case, play(stage, case)) for case in cases]
    assert any(found.tried.sent for _, found in played)
    return [f"{case}: {problem}" for case, found in played for problem in found.problems]


# --- the judge itself ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "in_tasks"), [*((kind, False) for kind in KINDS), ("mixed", True)], ids=[*KINDS, "mixed, in tasks"]
)
def test_an_honest_plan_is_sent_as_a_plan_of_now_runs_it(stage: Stage, kind: str, *, in_tasks: bool) -> None:
    story = f"{kind} strict"
    plan = plan_from_json(stage.plan_of(story))

    found = play(stage, Case(story=story, approve="honest", in_tasks=in_tasks))

    assert found.problems == []
    assert [(c.action, c.topic) for c in found.tried.sent] == [(c.action, c.topic) for c in plan.change_set.changes]


def test_the_judge_names_what_no_plan_of_now_runs(stage: Stage) -> None:
    story = "mixed open"
    text, honest, moment = stage.plan_of(story), play(stage, Case(story=story)).tried, stage.moment(story)
    create, configure = (next(c for c in honest.sent if isinstance(c, kind)) for kind in (CreateTopic, ConfigureTopic))

    def judged(*changes: object) -> list[str]:
        return list(problems_of(replace(honest, sent=changes), moment.anew, text, ()))

    assert judged(*honest.sent) == []
    one_replica = {partition: row[:1] for partition, row in create.assignment.items()}
    assert "has not 3 brokers" in judged(replace(create, assignment=one_replica))[0]
    assert "with {'retention.ms': '1'}" in judged(replace(configure, configs={"retention.ms": "1"}))[0]
    assert judged(replace(configure, topic="kept")) == ["configure kept was sent, and no plan of now runs it"]
    assert judged(create, create) == [f"('create', '{create.topic}') was sent twice"]
    held = stage.moment("mixed strict").anew
    doomed = [change for change in honest.sent if change.action == "delete"]
    assert len(list(problems_of(replace(honest, sent=doomed), held, text, ()))) == len(doomed)
    assert list(problems_of(Tried(1, "internal error: KeyError", ()), moment.anew, text, ())) != []


# --- the adversary ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("story", ["mixed strict", "mixed tight"])
def test_some_single_edits_send_nothing_that_no_plan_of_now_would_run(stage: Stage, story: str) -> None:
    cases = list(each_edit(stage, story))
    assert len(cases) > 2000
    assert problems(stage, Random(f"some {story}").sample(cases, 15)) == []


def test_some_edits_at_once_with_other_files_and_clusters_send_nothing_else_either(stage: Stage) -> None:
    assert problems(stage, islice(at_random(stage, Random("some"), "mixed strict"), 15)) == []


def test_what_happens_between_plan_and_apply_counts(stage: Stage) -> None:
    assert problems(stage, Random("moments").sample(list(each_moment("mixed strict")), 8)) == []


@pytest.mark.soak
@pytest.mark.parametrize("story", MIXED)
def test_every_single_edit(stage: Stage, story: str) -> None:
    """A third of the edits under each policy: all of them together."""
    assert problems(stage, list(each_edit(stage, story))[MIXED.index(story) :: len(MIXED)]) == []


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_many_edits_at_once(stage: Stage, kind: str) -> None:
    stories = [story for story in STORIES if story.startswith(kind)]
    cases = (islice(at_random(stage, Random(f"many {story}"), story), 100) for story in stories)
    assert problems(stage, chain.from_iterable(cases)) == []


@pytest.mark.soak
@pytest.mark.parametrize("story", MIXED)
def test_every_moment(stage: Stage, story: str) -> None:
    assert problems(stage, each_moment(story)) == []

"""Steps in stories from seeds: brokers die, others move replicas, requests get no answer, and the process is killed."""

from __future__ import annotations

import pytest

from fixtures.moves.stories import HAPPENINGS, PERSON, Story, broken, play

SEEDS = range(300)
MANY = range(1000, 11_000)
ENDS = {"done", "cancelled", "dropped"}


@pytest.fixture(scope="module")
def stories() -> list[Story]:
    return [play(seed) for seed in SEEDS]


def test_no_story_shows_what_must_never_be(stories: list[Story]) -> None:
    assert [(story.seed, story.problems) for story in stories if story.problems] == []


def test_a_seed_tells_the_same_story_each_time(stories: list[Story]) -> None:
    first, again = stories[17], play(17)
    assert (first.log, first.cluster.calls, first.mover.record) == (again.log, again.cluster.calls, again.mover.record)


def test_the_stories_have_every_happening_and_every_end(stories: list[Story]) -> None:
    told = " ".join(line for story in stories for line in story.log)
    assert [found.__name__ for found in {*HAPPENINGS, *PERSON} if found.__name__.strip("_") not in told] == []
    assert {end.status for story in stories for end in story.mover.record.ended} == ENDS


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_no_story_of_thousands_shows_what_must_never_be() -> None:
    assert broken(MANY) == []

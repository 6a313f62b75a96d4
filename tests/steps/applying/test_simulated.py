"""Applies on the simulated cluster: seeds, every point at which a process can die, and bugs that must be found."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import islice

import pytest

from fakes.simulation.cluster import SimulatedCluster
from fakes.simulation.process import SimulatedProcess
from fixtures.simulate import broken, every_crash_point, invariant_of, shortest
from fixtures.simulation.planted_bugs import BUGS
from fixtures.simulation.scripts import CHANGES, Happening, Planning, Script, What, script_of
from fixtures.simulation.stage import play
from topicops.model.errors import ClusterUnreachableError

SEEDS = range(40)
FOUND_WITHIN = 3_000
"""Seeds until each planted bug must be found."""
BEGIN = {
    "an unclear answer is not read back": 16,
    "a topic is deleted by its name": 677,
    "only what is done gets a line of audit": 800,
    "the journal is written before the audit log": 15,
    "deletes run after a failure": 67,
    "a refusal is believed": 72,
    "open intents of earlier runs are forgotten": 15,
    "verify believes ZooKeeper alone": 29,
    "verify looks at leaders, and not at ISRs": 34,
    "a group that cannot be read is taken for none": 186,
    "this host's clock alone is believed": 30,
    "brokers are not asked for failed log directories": 60,
}
"""A seed that finds a bug soon and with a short story, where none of the first few does: the search begins there."""
LONGEST_STORY = 10


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Apply logs each outcome."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_no_seed_breaks_an_invariant() -> None:
    assert [(script.seed, found) for script, found in broken(SEEDS)] == []


def test_a_seed_plays_the_same_story_each_time() -> None:
    first, again = play(script_of(17)), play(script_of(17))
    assert (first.story, first.calls, first.statuses) == (again.story, again.calls, again.statuses)


def test_the_seeds_have_every_kind_of_happening() -> None:
    kinds = {happening.what for seed in range(200) for happening in script_of(seed).happenings}
    assert kinds == {*What}


@pytest.mark.parametrize("planning", Planning)
@pytest.mark.parametrize("step", [pytest.param(3, id="each third"), pytest.param(1, id="all", marks=pytest.mark.soak)])
def test_every_point_at_which_the_process_can_die_is_survived(planning: Planning, step: int) -> None:
    scripts = list(every_crash_point(CHANGES, planning))
    assert len(scripts) > 50
    assert {str(script): found for script in scripts[::step] if (found := play(script).violations)} == {}


def test_the_death_of_the_controller_between_config_and_topic_znode_is_survived() -> None:
    """FT-17: the leftover config is replaced by the next request."""
    script = Script(1, ("create new",), (Happening(5, What.MISHAP, "CONTROLLER_DIES"),))
    played = play(script)
    assert played.violations == []
    assert any("dies" in line for line in played.story)


@pytest.mark.parametrize("bug", BUGS)
def test_each_planted_bug_is_found_and_its_story_is_short(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug](monkeypatch)
    [(script, found)] = islice(broken(range(BEGIN.get(bug, 0), FOUND_WITHIN)), 1)

    story = shortest(script)

    assert len(story.happenings) <= LONGEST_STORY
    assert invariant_of(play(story).violations[0]) == invariant_of(found[0])


def test_a_story_that_breaks_off_is_told_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: SimulatedCluster) -> None:
        raise KeyError(1)

    monkeypatch.setattr(SimulatedCluster, "heal", fail)
    assert [(script.seed, found) for script, found in broken([17])] == [
        (17, ["I0: the story broke off with KeyError(1)"])
    ]


def test_a_story_in_which_no_run_can_do_anything_breaks_an_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: SimulatedProcess) -> bool:
        raise ClusterUnreachableError("no ZooKeeper")

    monkeypatch.setattr(SimulatedProcess, "take_lease", fail)
    found = play(Script(1, ("create new",))).violations
    assert "I4: no run came to its end on the healed cluster" in found

"""``balanced`` beside ``kafka`` in some worlds; ``python -m benchmarks balance`` counts a thousand."""

import json
from pathlib import Path

import pytest
from benchmarks.balance import MEASURES, survey, world

ROOT = Path(__file__).parents[3]
WORLDS = 60
SIDES = ("numerator", "denominator")
EXCEPTIONS = 2
"""In so few worlds; of a thousand it may be one in a hundred."""


def test_a_world_follows_from_its_seed_and_is_unlike_the_next() -> None:
    assert world(7) == world(7)
    assert world(7) != world(8)


@pytest.mark.parametrize("measure", MEASURES)
def test_balanced_is_as_even_as_kafka_in_nearly_all_worlds(measure: str) -> None:
    assert len(survey(WORLDS).worse(measure)) <= EXCEPTIONS


@pytest.mark.parametrize("measure", MEASURES)
def test_balanced_is_more_even_than_kafka_on_the_whole(measure: str) -> None:
    assert survey(WORLDS).mean("balanced", measure) < survey(WORLDS).mean("kafka", measure)


def test_a_new_topic_is_never_more_than_one_apart_where_racks_are_even() -> None:
    assert survey(WORLDS).widest_new_topic("balanced") == 1
    assert survey(WORLDS).widest_new_topic("kafka") > 1


def test_the_page_on_placement_has_the_figures_of_the_kept_result() -> None:
    kept = json.loads((ROOT / "benchmarks/results/balance.json").read_text(encoding="utf-8"))["ratios"]
    page = (ROOT / "docs/reference/placement.md").read_text(encoding="utf-8")
    by_id = {ratio["id"]: ratio for ratio in kept}
    for measure in MEASURES:
        spread = by_id[f"{measure}-mean-spread-in-1000-worlds"]
        not_worse = by_id[f"{measure}-not-worse-in-1000-worlds"]["numerator"]
        means = [f"{value:.1f}" if value > 10 else f"{value:.2f}" for value in map(spread.get, SIDES)]
        cells = (measure.replace("-", " "), *means, f"{not_worse:,.0f}")
        assert f"| {' | '.join(cells)} |" in page

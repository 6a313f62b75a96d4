"""Which seeds ``make simulate`` plays."""

from __future__ import annotations

import pytest

from fixtures.simulate import main, seeds_of


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("50", range(1, 51)), ("1", range(1, 2)), ("1-50000", range(1, 50_001)), ("17-17", range(17, 18))],
)
def test_a_number_is_a_count_and_two_are_the_first_and_the_last(text: str, seeds: range) -> None:
    assert seeds_of(text) == seeds


@pytest.mark.parametrize("text", ["", "0", "-5", "9-3", "all", "1-"])
def test_any_other_text_plays_nothing_and_says_how_to_write_it(text: str) -> None:
    with pytest.raises(SystemExit, match="SEEDS=50, or which, as in SEEDS=17-40"):
        seeds_of(text)


def test_a_second_word_is_refused_and_not_left_out() -> None:
    with pytest.raises(SystemExit, match="SEEDS=1-3 900-905: write how many"):
        main(["1-3", "900-905"])

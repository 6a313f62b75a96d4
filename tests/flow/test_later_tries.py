"""Which try of a task counts, by the journals that its tries have left."""

from __future__ import annotations

from pathlib import Path

import pytest

from topicops.edges.home.journal import has_later_try


@pytest.mark.parametrize(
    ("own", "others", "is_overtaken"),
    [
        ("9", ["10"], True),
        ("10", ["9", "1", "2"], False),
        ("1", [], False),
        ("2", ["2"], False),
        ("2", ["x", ""], False),
    ],
)
def test_a_try_is_overtaken_by_one_with_a_larger_number(
    tmp_path: Path, own: str, others: list[str], is_overtaken: bool
) -> None:
    for name in (own, *others):
        (tmp_path / f"create-{name}.jsonl").touch()
    assert has_later_try(tmp_path / f"create-{own}.jsonl") is is_overtaken

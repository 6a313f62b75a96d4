"""The counter of the code's size."""

from __future__ import annotations

from pathlib import Path

from benchmarks.size import Size, crowded, passed, rooms, size_of, sums

MODULE = '''"""A text."""

import json  # at the top


class Point:
    x: int
    """Number of steps to the right."""


def of(text):
    import ast

    return json, ast
'''


def test_a_module_is_counted_by_kind_of_line() -> None:
    assert size_of(MODULE) == Size(files=1, lines=14, code=4, docs=2, late_imports=1)


def test_rooms_are_two_levels_deep_and_the_loop_is_a_part_of_the_package(tmp_path: Path) -> None:
    for name in ("model/a.py", "steps/planning/deep/b.py", "cli/c.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("x = 1\n", encoding="utf-8")
    found = rooms(tmp_path)
    assert {room: size.lines for room, size in found.items()} == {"cli": 1, "model": 1, "steps/planning": 1}
    assert {name: size.lines for name, size in sums(found).items()} == {"package": 3, "loop": 2}


def test_a_limit_that_is_passed_is_named(tmp_path: Path) -> None:
    for number in range(15):
        (tmp_path / f"m{number}.py").touch()
    totals = {"package": Size(lines=55_001), "loop": Size(lines=31_000)}
    assert list(passed(totals, crowded(tmp_path))) == [
        "package: 55001 lines, more than 55000",
        ".: 15 siblings, more than 14",
    ]

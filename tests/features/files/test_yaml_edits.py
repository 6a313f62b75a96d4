"""One field set or taken out: all other lines stay."""

from __future__ import annotations

import pytest

from topicops.features.shared.writer import node_of
from topicops.features.shared.yaml_edits import GONE, with_field
from topicops.model.errors import UsageError

BLOCK = "a: 1  # one\nspec:\n  # above\n  configs:\n    x: 7d   # why\n    y: 2\n  # below\nz: 3\n"


@pytest.mark.parametrize(
    ("text", "path", "content", "expected"),
    [
        pytest.param(BLOCK, "a", 2, BLOCK.replace("a: 1", "a: 2"), id="a comment behind the value stays"),
        pytest.param(BLOCK, "spec.configs.x", "8d", BLOCK.replace("7d", "8d"), id="deep"),
        pytest.param(BLOCK, "spec.p", 5, BLOCK.replace("y: 2\n", "y: 2\n  p: 5\n"), id="new, last of its block"),
        pytest.param(
            BLOCK, "o.prod.p", 5, f"{BLOCK}o:\n  prod:\n    p: 5\n", id="new, with all that is missing around it"
        ),
        pytest.param(BLOCK, "spec.configs.y", GONE, BLOCK.replace("    y: 2\n", ""), id="gone"),
        pytest.param(
            "b: 1\nspec:\n  configs:\n    x: 1\n", "spec.configs.x", GONE, "b: 1\n", id="the last of its block"
        ),
        pytest.param("m: {a: 1, b: 2}  # why\n", "m.a", "3d", "m: {a: 3d, b: 2}  # why\n", id="a value in braces"),
        pytest.param("m: {a: x}\n", "m.a", "y,z", "m:\n  a: y,z\n", id="a value that braces would divide"),
        pytest.param("b: 1\nm:\n  # why\n  a: 1\n", "m.a", GONE, "b: 1\n  # why\n", id="gone, but for its comments"),
        pytest.param(BLOCK, "spec.none", GONE, BLOCK, id="gone, and was not there"),
        pytest.param(
            'm: {q: 010, t: "7", e: [a, 1]}\n',
            "m.e",
            ("a", "b"),
            'm:\n  q: 010\n  t: "7"\n  e: [a, b]\n',
            id="in braces",
        ),
        pytest.param("m: {}\n", "m.c.x", 1, "m:\n  c:\n    x: 1\n", id="in empty braces"),
        pytest.param("m:\nz: 1\n", "m.x", 1, "m:\n  x: 1\nz: 1\n", id="in nothing"),
        pytest.param("a: |\n  long\n  text\nz: 1\n", "a", "short", "a: short\nz: 1\n", id="a text of several lines"),
        pytest.param("a: 1", "b", 2, "a: 1\nb: 2\n", id="no line end"),
    ],
)
def test_a_field_is_set_or_taken_out(text: str, path: str, content: object, expected: str) -> None:
    assert with_field(text, node_of(text), path.split("."), content) == expected


@pytest.mark.parametrize("text", ["{a: 1}\n", "- a\n", "m: {a: 1, # why\n  b: 2}\n", "  a: 1\n"])
def test_what_would_lose_a_comment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="one field a line"):
        with_field(text, node_of(text), ["m", "c"], 2)

"""The fast reader of plain files gives the nodes that libyaml's events give, or leaves the file to them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cases.test_bad_inputs import CASES
from topicops.edges.specs.fast_path import read_simple
from topicops.edges.specs.reader import DEEPEST, MOST_NODES, nodes_of_events
from topicops.model.specs.document import Node

KEYS = ("a", "b", "retention.ms", "1", "null", "~", "a b", "é", "<<")
VALUES = (
    "", "x", "7d", "-1", "010",
    "a b", "a: b", "a:b", "a #b", "a#b", "# c", "'x'", "'it''s'", '"x"', '"\\n"', "'x", "null",
    "~", "[a, b]", "[a, 'b, c']", "[]", "[a,]", "[a", "{a: b}", "{a: b, a: c}", "{a}", "{a: {b: c}}",
    "{}", "&a b", "*a",
    "!x y", "|", ">", "@x", "a,b", "a]", "- a", "--- a", "...", "?", "%a", "x ", "x\u00a0y", "(a) b?", "a\u200bb",
)  # fmt: skip
LINES = st.builds(
    lambda indent, key, gap, value: f"{' ' * indent}{key}:{gap}{value}",
    st.sampled_from((0, 0, 0, 1, 2, 2, 4)),
    st.sampled_from(KEYS),
    st.sampled_from((" ", " ", "  ", "")),
    st.sampled_from(VALUES),
)
OTHER_LINES = st.sampled_from(("", "  ", "# note", "  # note", "- a", "---", "...", "? a", "text", "%YAML 1.2"))


def fast(text: str) -> Node | None:
    return read_simple(text, deepest=DEEPEST, most_nodes=MOST_NODES)


@given(st.lists(LINES | LINES | LINES | OTHER_LINES, max_size=8))
def test_both_readers_give_the_same_nodes(lines: list[str]) -> None:
    text = "\n".join([*lines, ""])

    simple = fast(text)

    assert simple is None or simple == nodes_of_events(text)


def test_both_readers_agree_on_every_bad_input() -> None:
    entries = [entry for case in CASES for entry in case["files"].values() if entry and "text" in entry]
    texts = [text for entry in entries if "\t" not in (text := entry["text"]) and "\r" not in text]

    assert [text for text in texts if (simple := fast(text)) is not None and simple != nodes_of_events(text)] == []
    assert len([text for text in texts if fast(text) is not None]) > 100


def test_a_common_topic_takes_the_fast_path() -> None:
    topic = (
        "kind: Topic\nmetadata: {name: a, owner: me}\nspec:\n  partitions: 6  # few\n  configs:\n    retention.ms: 7d\n"
    )

    simple = fast(topic)

    assert simple is not None
    assert simple == nodes_of_events(topic)

"""Text of specs that we write: read back, by our reader and by a common one, it is what was meant."""

from __future__ import annotations

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from topicops.edges.specs.reader import FORBIDDEN, read_document
from topicops.features.shared.yaml_blocks import plain_value
from topicops.features.shared.yaml_text import config_content, scalar, text_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"])).filter(
    lambda text: not any(FORBIDDEN.search(character) and character.isprintable() for character in text)
)


@given(TEXTS)
@example("no")
@example("null")
@example("1e3")
@example("2024-01-02")
@example("a: b")
@example("a #b")
@example("- a")
@example("'")
@example('a\\b"c\nd\te\x00')
@example("7d")
@example("@x")
@example("")
@example("A?")
@example("a?b")
def test_a_text_stays_the_same_text_for_every_reader(text: str) -> None:
    in_block, inside = f"a: {scalar(text)}\n", f"a: [{scalar(text, inside=True)}, b]\n"

    assert plain_value(read_document(in_block.encode())) == {"a": text}
    assert plain_value(read_document(inside.encode())) == {"a": [text, "b"]}
    assert yaml.safe_load(in_block) == {"a": text}
    assert yaml.safe_load(inside) == {"a": [text, "b"]}


def test_configs_are_spelled_for_people() -> None:
    spelled = {
        ("retention.ms", "604800000"): "retention.ms: 7d\n",
        ("retention.ms", "-1"): "retention.ms: -1\n",
        ("retention.ms", "1001"): "retention.ms: 1001\n",
        ("segment.bytes", "1073741824"): "segment.bytes: 1GiB\n",
        ("min.insync.replicas", "2"): "min.insync.replicas: 2\n",
        ("preallocate", "true"): "preallocate: true\n",
        ("min.cleanable.dirty.ratio", "0.5"): "min.cleanable.dirty.ratio: 0.5\n",
        ("min.cleanable.dirty.ratio", "NaN"): "min.cleanable.dirty.ratio: NaN\n",
        ("cleanup.policy", "compact,delete"): "cleanup.policy: compact,delete\n",
        ("cleanup.policy", ""): 'cleanup.policy: ""\n',
        ("message.format.version", "2.3-IV1"): 'message.format.version: "2.3-IV1"\n',
    }

    assert {key: text_of({key[0]: config_content(*key)}) for key in spelled} == spelled


def test_mappings_and_lists_of_them_stand_in_blocks() -> None:
    text = text_of({"a": {"b": {"c": 1}, "d": {}}, "e": ({"f": "x", "g": None}, {"h": True}), "i": ("x", "z, 1")})

    assert text == ('a:\n  b:\n    c: 1\n  d: {}\ne:\n  - f: x\n    g: null\n  - h: true\ni: [x, "z, 1"]\n')

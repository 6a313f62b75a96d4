"""One way to write each file: whatever the style, the same sense, the same comments, and no change the second time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from fixtures.spec_styles import styled, topics
from topicops.features.files.formatting.field_order import PLACES, canonical_value
from topicops.features.files.formatting.standard_form import formatted
from topicops.features.shared.writer import node_of
from topicops.model.specs.document import FileKind, Node

COMMENT = re.compile(r"# (?:about|on) \d+")


def fmt(text: str, kind: FileKind = "Topic") -> str:
    return formatted(text, kind)


def parsed(text: str) -> Node:
    root = node_of(text)
    assert root is not None, text
    return root


@given(topics().flatmap(styled))
def test_whatever_the_style_the_form_is_the_same_and_nothing_is_lost(text: str) -> None:
    after = fmt(text)

    assert canonical_value(parsed(after), PLACES["Topic"]) == canonical_value(parsed(text), PLACES["Topic"])
    assert sorted(COMMENT.findall(after)) == sorted(COMMENT.findall(text))
    assert fmt(after) == after, "a second time changes nothing"
    assert [line for line in after.split("\n") if line != line.rstrip()] == []
    assert "\n\n\n" not in after
    assert after.endswith("\n")
    assert not after.startswith("\n")
    keys = re.findall(r"^([A-Za-z]+):", after, re.MULTILINE)
    assert keys == ["apiVersion", "kind", "metadata", "spec", "lifecycle"]


HEAD = "apiVersion: topicops/v1\nkind: Topic\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("spec: {partitions: '12'}\n", "spec: {partitions: 12}\n", id="a number is not quoted"),
        pytest.param("metadata: {name: 12}\n", 'metadata: {name: "12"}\n', id="a text like a number is"),
        pytest.param("metadata: {name: 'a b'}\n", "metadata: {name: a b}\n", id="no quotes where none are needed"),
        pytest.param("metadata: {name: 'a: b'}\n", 'metadata: {name: "a: b"}\n', id="one kind of quotes"),
        pytest.param("metadata: {name: 'a\"b: '}\n", "metadata: {name: 'a\"b: '}\n", id="rather than an escape"),
        pytest.param('metadata: {name: "a\\u00e4"}\n', 'metadata: {name: "a\\u00e4"}\n', id="escapes stay"),
        pytest.param("spec: {configs: {segment.ms: ~}}\n", "spec: {configs: {segment.ms: null}}\n", id="null"),
        pytest.param(
            "spec: {configs: {segment.ms: }}\n", "spec: {configs: {segment.ms: null}}\n", id="nothing is null"
        ),
        pytest.param(
            "spec:\n  configs:\n    retention.ms: 86400000   # a day\n",
            "spec:\n  configs:\n    retention.ms: 1d         # a day\n",
            id="a comment keeps its column",
        ),
        pytest.param(
            "spec:\n  configs:\n    retention.ms: 36h\n    segment.ms: 120s\n",
            "spec:\n  configs:\n    retention.ms: 36h\n    segment.ms: 120s\n",
            id="a unit that somebody chose stays",
        ),
        pytest.param(
            "spec:\n  configs:\n    retention.ms: soon\n    no.such: '1'\n",
            'spec:\n  configs:\n    retention.ms: soon\n    no.such: "1"\n',
            id="what is no value is left alone",
        ),
        pytest.param(
            "metadata:\n  owner: a\n  description: |+\n    x  \n\n  name: b\n",
            "metadata:\n  name: b\n  owner: a\n  description: |+\n    x  \n\n",
            id="a block of text moves as it is",
        ),
        pytest.param(
            "metadata:\n  owner: a\n  name: >-\n     long\n     text\nspec: {}\n",
            "metadata:\n  name: >-\n     long\n     text\n  owner: a\nspec: {}\n",
            id="a folded text moves as it is",
        ),
        pytest.param(
            "spec:\n    # of partitions\n    partitions: 1\n      # deeper\n# of the profile\n    profile: p\n",
            "spec:\n  # of the profile\n  profile: p\n  # of partitions\n  partitions: 1\n    # deeper\n",
            id="comments go with their fields",
        ),
        pytest.param(
            "spec: {partitions: 1,\n  profile: p}\n",
            "spec: {partitions: 1,\n  profile: p}\n",
            id="braces over lines stay",
        ),
        pytest.param("---\nspec: {}\n", "---\nspec: {}\n", id="the start of the document stays"),
        pytest.param("? spec\n: {}\n", "? spec\n: {}\n", id="an explicit key stays"),
    ],
)
def test_how_a_spec_is_written(before: str, after: str) -> None:
    assert fmt(before) == after


def test_lists_of_mappings_are_indented_below_their_key() -> None:
    first = "    - topic: a\n      # why\n      code: TOP308\n"
    text = f"spec:\n    exceptions:\n{first}    -   topic: b\n        code: TOP310\n"

    assert fmt(text, "Exceptions") == (
        "spec:\n  exceptions:\n    - topic: a\n      # why\n      code: TOP308\n    - topic: b\n      code: TOP310\n"
    )


def test_durations_of_an_environment_are_in_seconds_where_they_can() -> None:
    text = "spec: {verify: {leaders: 30000ms, isr: 1500ms, metadata: 90s}}\n"

    assert fmt(text, "Environment") == "spec: {verify: {leaders: 30s, isr: 1500ms, metadata: 90s}}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [("1048576", "1MiB"), ("1536KiB", "1536KiB"), ("1000", "1000"), ("0", "0"), ("fast", "fast"), ("1_000", "1_000")],
)
def test_sizes_of_an_environment_have_a_unit_that_divides_them(before: str, after: str) -> None:
    assert (
        fmt(f"spec: {{apply: {{throttle: {before}}}}}\n", "Environment") == f"spec: {{apply: {{throttle: {after}}}}}\n"
    )


@pytest.mark.parametrize("text", ["a: [", "", "\t", "a: 1\na: 2\n"])
def test_what_cannot_be_read_stays(text: str) -> None:
    assert fmt(text) == text

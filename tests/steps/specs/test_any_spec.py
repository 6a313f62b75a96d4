"""Whatever stands in the files: problems on places that there are, in words that can be printed, and no exception.

The same property twice: on few files in every run, on many in the long one.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.spec_folder import LOCAL, NOW
from topicops.edges.specs.open_files import ReadingError
from topicops.edges.specs.reader import read_document
from topicops.model.codes import Code
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Document, FileKind, Tree
from topicops.steps.reporting.diagnostics_text import annotation, diagnostics_json
from topicops.steps.specs.validate import validate

CORPUS = json.loads((Path(__file__).parents[2] / "data" / "bad-inputs.json").read_text(encoding="utf-8"))
TEXTS = sorted(
    {
        entry["text"]
        for case in CORPUS["cases"]
        for entry in case["files"].values()
        if entry is not None and "text" in entry
    }
)
FIELDS_AND_CONFIGS: list[str] = sorted(
    {
        name
        for file in resources.files("topicops").joinpath("made_schemas").iterdir()
        if file.is_file() and file.name != "plan.v1.json"
        for part in json.loads(file.read_text(encoding="utf-8"))["$defs"].values()
        for name in part["properties"]
    }
)
PIECES = st.one_of(
    st.sampled_from(FIELDS_AND_CONFIGS),
    st.sampled_from(
        ["null", "~", "{}", "[]", "010", "-1", "1e3", "7 days", "5GB", "9" * 5000, "true", "no", "2024-01-02"]
    ),
    st.sampled_from(
        ["&a ", "*a", "<<: ", "!!str ", "? ", "- ", "---\n", "...", "%YAML 1.2\n", "#", "|\n", ">-\n", "\t"]
    ),
    st.sampled_from(["\x1b[2J", "\u202e", "\u200b", "\ufeff", "\r", "\u2028", "\x00", "\ud7ff", "\U000e0041"]),
    st.text(max_size=8),
)


@st.composite
def spoiled_texts(draw: st.DrawFn) -> str:
    """A file of the table of which some pieces were replaced."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        text = text[:start] + draw(PIECES) + text[end:]
    return text


KINDS: tuple[tuple[FileKind, str, str], ...] = (
    ("Topic", "topics/shop/orders.yaml", "orders"),
    ("Profile", "topics/profiles/durable.yaml", "durable"),
    ("Environment", "topics/environments/local.yaml", "local"),
    ("Exceptions", "topics/environments/local.exceptions.yaml", "local"),
)


def tree_with(text: str, kind: FileKind, file: str, stem: str) -> Tree:
    """The file beside an environment that is in order."""
    others = [] if kind == "Environment" else [document_of(LOCAL, "Environment", KINDS[2][1], "local")[0]]
    document, problems = document_of(text, kind, file, stem)
    return Tree(documents=(*others, document), problems=problems, files=2)


def document_of(text: str, kind: FileKind, file: str, stem: str) -> tuple[Document, tuple[Diagnostic, ...]]:
    try:
        root = read_document(text.encode())
    except ReadingError as error:
        return Document(file=file, kind=kind, stem=stem, root=None), (error.diagnostic(file),)
    return Document(file=file, kind=kind, stem=stem, root=root), ()


def assert_all_is_said_well(text: str, kind: FileKind, file: str, stem: str) -> None:
    answer = validate(tree_with(text, kind, file, stem), environment="local", now=NOW)

    lines = text.split("\n")
    for found in answer.diagnostics:
        if found.file == file and found.code != "TOP106":  # libyaml may have looked beyond the last line already
            assert 1 <= found.line <= len(lines)
            assert 1 <= found.column <= len(lines[found.line - 1]) + 1
        assert (found.line, found.column) <= (found.end_line, found.end_column)
        assert annotation(found).isprintable()
    assert diagnostics_json(answer.diagnostics, files=2).replace("\n", "").isprintable()
    assert list(answer.diagnostics) == sorted(answer.diagnostics, key=lambda found: found.sort_key)
    assert answer.has_errors == (answer.desired is None)


@given(spoiled_texts(), st.sampled_from(KINDS))
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_any_file_gets_an_answer(text: str, kind: tuple[FileKind, str, str]) -> None:
    assert_all_is_said_well(text, *kind)


@pytest.mark.soak
@given(spoiled_texts(), st.sampled_from(KINDS))
@settings(max_examples=10_000, suppress_health_check=[HealthCheck.too_slow])
def test_any_of_many_files_gets_an_answer(text: str, kind: tuple[FileKind, str, str]) -> None:
    assert_all_is_said_well(text, *kind)


@pytest.mark.soak
@given(st.binary(max_size=400) | st.text("abc:,[]{}&*!%#'\"|>-?~\n\t 01", max_size=200).map(str.encode))
@settings(max_examples=50_000, suppress_health_check=[HealthCheck.too_slow])
def test_any_of_many_strings_of_bytes_gives_nodes_or_one_diagnostic(data: bytes) -> None:
    assert first_code(data) in {None, *(code for code in Code if code < "TOP2" and code.startswith("TOP"))}


def first_code(data: bytes) -> str | None:
    try:
        read_document(data)
    except ReadingError as error:
        return error.code
    return None

"""The reader: files opened with care, and nodes with the places of what they say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicops.edges.specs.open_files import LARGEST_FILE, ReadingError, source_lines
from topicops.edges.specs.reader import read_document, read_tree
from topicops.model.errors import UsageError
from topicops.model.specs.document import Fields, Items, Span, Text


def test_every_scalar_is_the_text_that_a_person_sees() -> None:
    node = read_document(b"a: no\nb: 010\nc: 2024-01-02\nd: '~'\ne: ~\nf:\n")

    assert isinstance(node, Fields)
    read = [(value.text, value.plain, value.is_null) for _, value in node.entries if isinstance(value, Text)]
    assert read == [
        ("no", True, False),
        ("010", True, False),
        ("2024-01-02", True, False),
        ("~", False, False),
        ("~", True, True),
        ("", True, True),
    ]


def test_places_count_characters_from_one() -> None:
    node = read_document("ключ: {a: [é, 'b c']}\n".encode())

    assert isinstance(node, Fields)
    key, inner = node.entries[0]
    assert key.span == Span(1, 1, 1, 5)
    assert isinstance(inner, Fields)
    _, items = inner.entries[0]
    assert isinstance(items, Items)
    assert [item.span for item in items.items] == [Span(1, 12, 1, 13), Span(1, 15, 1, 20)]


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        pytest.param("a: [1, 2\nb: 3\n", "TOP106", 1, 4, id="an open bracket, where it opens"),
        pytest.param("a: [1 , {b: 1, c: 2]\n", "TOP106", 1, 9, id="an open brace inside a closed list"),
        pytest.param('a: [1, "]", 2\nb: 3\n', "TOP106", 1, 4, id="a bracket in quotes closes nothing"),
        pytest.param("a: [1, \"x\" 'y']\n", "TOP106", 1, 12, id="a missing comma, where it is missing"),
        pytest.param("a:\n  - &x 1\n", "TOP108", 2, 5, id="an anchor in a list"),
        pytest.param("a: !!str &x b\n", "TOP110", 1, 4, id="a tag before an anchor"),
        pytest.param("a: ! b\n", "TOP110", 1, 4, id="the tag without a name"),
        pytest.param("# c\n%YAML 1.2\n---\na: b\n", "TOP110", 2, 1, id="a directive below a comment"),
        pytest.param("%FOO bar\n---\na: b\n", "TOP110", 1, 1, id="an unknown directive"),
        pytest.param("a: {\n\tb: 1}\n", "TOP107", 2, 1, id="a tab inside braces"),
        pytest.param("a:\n  \tb: 1\n", "TOP107", 2, 3, id="a tab behind blanks"),
        pytest.param("a: b\rc: d\n", "TOP102", 1, 5, id="a bare carriage return"),
        pytest.param("\ufeffa: b\n", "TOP102", 1, 1, id="a byte order mark"),
        pytest.param("a: b\u2066\n", "TOP102", 1, 5, id="a direction mark"),
        pytest.param("a: 1\n'a': 2\n", "TOP111", 2, 1, id="a key twice, once quoted"),
        pytest.param("~: 1\n", "TOP114", 1, 1, id="null as a key"),
        pytest.param("? \n: 1\n", "TOP114", 1, 2, id="no key at all"),
        pytest.param("a: 1\n...\n---\nb: 2\n", "TOP112", 3, 1, id="a second document behind an end marker"),
        pytest.param("null\n", "TOP113", 1, 1, id="a document that says null"),
        pytest.param("", "TOP113", 1, 1, id="no byte at all"),
    ],
)
def test_a_file_ends_at_its_first_problem(text: str, code: str, line: int, column: int) -> None:
    with pytest.raises(ReadingError) as caught:
        read_document(text.encode())

    found = caught.value.diagnostic("x.yaml")
    assert (found.code, found.line, found.column) == (code, line, column)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_another_unicode_encoding_has_its_own_code(encoding: str) -> None:
    with pytest.raises(ReadingError) as caught:
        read_document("a: b\n".encode(encoding))

    assert caught.value.code == "TOP119"


@given(st.binary(max_size=200) | st.text("abc:,[]{}&*!%#'\"|>-?~\n\t 01", max_size=80).map(str.encode))
def test_any_bytes_give_nodes_or_one_diagnostic(data: bytes) -> None:
    assert answer_to(data) in {"Text", "Items", "Fields", "TOP1"}


def answer_to(data: bytes) -> str:
    try:
        return type(read_document(data)).__name__
    except ReadingError as error:
        return error.code[:4]


def test_the_folder_decides_what_a_file_is(tmp_path: Path) -> None:
    for name in ("web/a.b.yaml", "profiles/p.yaml", "environments/e.yaml", "environments/e.exceptions.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a: b\n")

    tree = read_tree(tmp_path)

    assert {(document.kind, document.stem) for document in tree.documents} == {
        ("Topic", "a.b"),
        ("Profile", "p"),
        ("Environment", "e"),
        ("Exceptions", "e"),
    }
    assert tree.files == 4


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("a.yaml", "TOP116", id="no domain"),
        pytest.param("web/deeper/a.yaml", "TOP116", id="too deep"),
        pytest.param("web/a b.yaml", "TOP116", id="a blank"),
        pytest.param("environments/a.b.yaml", "TOP116", id="an environment with a dot"),
        pytest.param("web/a.yml", "TOP118", id="another extension"),
        pytest.param("web/a", "TOP118", id="no extension"),
    ],
)
def test_a_file_that_would_be_overlooked_is_a_problem(name: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a: b\n")

    assert [problem.code for problem in read_tree(tmp_path).problems] == [code]


def test_notes_beside_the_specs_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("about")
    (tmp_path / ".gitkeep").write_text("")

    assert read_tree(tmp_path).files == 0


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_repository_within_the_folder_is_one_problem(tmp_path: Path, kind: str) -> None:
    (tmp_path / "pay").mkdir()
    (tmp_path / "pay/pay.a.yaml").write_text("a: b\n")
    (tmp_path / "pay/.git").mkdir() if kind == "folder" else (tmp_path / "pay/.git").touch()
    (tmp_path / ".git").mkdir()

    tree = read_tree(tmp_path)

    assert [(problem.code, Path(problem.file).name) for problem in tree.problems] == [("TOP115", "pay")]
    assert "a repository of its own, or a submodule" in tree.problems[0].summary
    assert [document.root for document in tree.documents] in ([], [None])


def test_links_pipes_folders_and_closed_files_are_not_read(tmp_path: Path) -> None:
    web = tmp_path / "web"
    web.mkdir()
    (tmp_path / "outside.txt").write_text("a: b\n")
    (web / "link.yaml").symlink_to(tmp_path / "outside.txt")
    (web / "loop.yaml").symlink_to(web / "loop.yaml")
    os.mkfifo(web / "pipe.yaml")
    (web / "folder.yaml").mkdir()
    (tmp_path / "elsewhere").symlink_to(web, target_is_directory=True)
    (tmp_path / "outside.txt").rename(tmp_path.parent / "outside.txt")

    problems = read_tree(tmp_path).problems

    assert {Path(problem.file).name: problem.code for problem in problems} == dict.fromkeys(
        ["link.yaml", "loop.yaml", "pipe.yaml", "folder.yaml", "elsewhere"], "TOP115"
    )


def test_a_thousand_folders_inside_each_other_are_one_problem(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1_100):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("a.yaml", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)

    problems = read_tree(tmp_path).problems
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)  # too deep for Python's own removal

    assert [problem.code for problem in problems] == ["TOP116"]


@pytest.mark.parametrize(("size", "codes"), [(LARGEST_FILE, []), (LARGEST_FILE + 1, ["TOP103"])])
def test_a_file_is_read_up_to_its_limit(size: int, codes: list[str], tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a.yaml").write_bytes(b"a: b\n".ljust(size, b"#"))

    assert [problem.code for problem in read_tree(tmp_path).problems] == codes


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        read_tree(tmp_path / "nowhere")


def test_a_file_that_cannot_be_read_has_no_source_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("one\r\ntwo\n")

    assert source_lines(file) == ["one", "two", ""]
    assert source_lines(tmp_path / "b.yaml") == []

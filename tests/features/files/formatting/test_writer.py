"""Writing spec files: whole or not at all, and never over what somebody else wrote."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from topicops.edges.specs.reader import FORBIDDEN, read_document
from topicops.features.shared.writer import document_of, node_of, replace_text, write_new
from topicops.features.shared.yaml_blocks import plain_value
from topicops.features.shared.yaml_text import config_content, scalar, text_of
from topicops.model.errors import SpecError, SpecFileError


def names(folder: Path) -> list[str]:
    """Return every file below, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_files_and_their_folders_are_made(tmp_path: Path) -> None:
    write_new(tmp_path / "topics", {"a/one.yaml": "1\n", "b/two.yaml": "ü\n"})

    assert names(tmp_path) == ["topics/a/one.yaml", "topics/b/two.yaml"]
    assert (tmp_path / "topics/b/two.yaml").read_bytes() == "ü\n".encode()


@pytest.mark.parametrize("standing", ["file", "link", "folder"])
def test_where_something_stands_nothing_at_all_is_written(standing: str, tmp_path: Path) -> None:
    place = tmp_path / "b/two.yaml"
    place.parent.mkdir()
    match standing:
        case "file":
            place.write_text("mine")
        case "link":
            place.symlink_to("nowhere")
        case _:
            place.mkdir()
    before = names(tmp_path)

    with pytest.raises(SpecFileError, match=r"b/two\.yaml"):
        write_new(tmp_path, {"a/one.yaml": "1\n", "b/two.yaml": "2\n"})

    assert names(tmp_path) == before


def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics/a").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(SpecFileError, match="link"):
        write_new(tmp_path / "topics", {"a/one.yaml": "1\n"})

    assert names(tmp_path / "elsewhere") == []


def test_what_the_disk_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file where the folder should be")

    with pytest.raises(SpecFileError, match=r"a/one\.yaml: cannot be written"):
        write_new(tmp_path, {"a/one.yaml": "1\n"})

    assert names(tmp_path) == ["a"]


def test_a_file_is_replaced_with_its_permissions_kept(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text("before")
    path.chmod(0o640)

    replace_text(path, "after", before="before")

    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("after", 0o640)
    assert names(tmp_path) == ["one.yaml"]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text("somebody else's")

    with pytest.raises(SpecFileError, match="changed"):
        replace_text(path, "after", before="before")

    assert path.read_text() == "somebody else's"


def test_a_link_and_a_file_that_is_gone_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text("before")
    (tmp_path / "link.yaml").symlink_to("real.yaml")

    for name in ("link.yaml", "gone.yaml"):
        with pytest.raises(SpecFileError, match=name):
            replace_text(tmp_path / name, "after", before="before")

    assert (tmp_path / "real.yaml").read_text() == "before"


def test_a_text_is_read_as_the_file_that_it_would_be(tmp_path: Path) -> None:
    document = document_of(tmp_path, "environments/local.exceptions.yaml", "a: 1\n")

    assert (document.kind, document.stem) == ("Exceptions", "local")
    assert node_of("a: [") is None
    with pytest.raises(SpecError, match="1 error"):
        document_of(tmp_path, "a/one.yaml", "a: [")


# ---- What is written is read back as it was meant, by our reader and by a common one ----

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

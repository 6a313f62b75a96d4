"""Files of JSON that nobody here wrote: each reader says in one sentence which file it is, whatever is in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.changes import audit_origin
from topicops.edges.home.artifacts import ArtifactStore
from topicops.edges.home.audit_files import read_audit_log
from topicops.edges.home.audit_log import FileAuditLog
from topicops.edges.home.file_lease import holder_text
from topicops.edges.home.journal import abandoned, read_journal
from topicops.edges.home.memories import topic_count
from topicops.flow.runs.run import load_plan
from topicops.model.errors import TopicopsError
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment
from topicops_local.state import read_state

DEPTHS = (*range(850, 1010, 4), 100_000)
"""Python gives up at about a thousand; how deep exactly depends on where the reader is called."""
ORIGIN = audit_origin()

Reader = Callable[[Path], object]


def abandoned_journals(path: Path) -> None:
    with abandoned(path.parent):
        pass


READERS: dict[str, tuple[str, Reader]] = {
    "a plan": ("plan.json", load_plan),
    "an artifact": ("a.json", lambda path: ArtifactStore(path.parent).read_value("a.json", object)),
    "an artifact with a type": ("a.json", lambda path: ArtifactStore(path.parent).read_value("a.json", Desired)),
    "an environment": ("a.json", lambda path: ArtifactStore(path.parent).read_value("a.json", Environment)),
    "the count of topics": ("last-good/c.json", lambda path: topic_count(path.parents[1], "c")),
    "a journal": ("journal-all-1.jsonl", read_journal),
    "an open journal": ("open.json", abandoned_journals),
    "an audit log": ("local.jsonl", lambda path: FileAuditLog(path.parent, ORIGIN).check()),
    "the local cluster": ("state.json", lambda path: read_state(path.parent)),
}


@pytest.mark.parametrize("around", ['{"a":%s}', '{"format_version":"1.1","source":%s}', "%s"])
@pytest.mark.parametrize("name", READERS)
def test_deep_json_is_a_sentence_that_names_the_file(name: str, around: str, tmp_path: Path) -> None:
    file, read = READERS[name]
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    for depth in DEPTHS:
        for opens, closes in (("[", "]"), ('{"a":', "}")):
            path.write_text(around % (opens * depth + "1" + closes * depth))

            said = answer(read, path)

            assert said is None or (str(tmp_path) in said and "\n" not in said), depth


def answer(read: Reader, path: Path) -> str | None:
    """Return what the typed error says; None if the reader takes the file. Any other error fails the test."""
    try:
        read(path)
    except TopicopsError as error:
        return str(error)
    return None


def test_the_holder_of_a_lease_that_is_deep_is_unknown() -> None:
    assert "cannot be read" in holder_text(b"[" * 100_000)


@pytest.mark.parametrize("text", ["9" * 5_000 + ":" + "0" * 64, "9" * 5_000, "٣:" + "0" * 64])
def test_a_head_that_counts_with_5000_digits_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "local.head").write_text(text)
    (tmp_path / "local.jsonl").write_text("")

    assert read_audit_log(tmp_path, "local").head is None

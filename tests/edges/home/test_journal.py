"""No request without a durable intent; what a crash left open is found, and a living process is left alone."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.changes import audit_origin, create_topic, plan_of
from topicops.edges.home.journal import (
    FileJournal,
    OpenJournal,
    abandoned,
    has_later_try,
    intended_topics,
    open_intents,
    read_journal,
    registered,
    unregister,
)
from topicops.model.errors import ArtifactError
from topicops.model.runs.results import Outcome, OutcomeStatus

TESTS = str(Path(__file__).parents[2])
NOW = datetime(2025, 3, 1, 12, 30, 15, 250000, tzinfo=UTC)

(GATED,) = plan_of(create_topic("a", (1, 2))).changes
DIGEST = GATED.digest
DONE = Outcome(topic="a", action="create", digest=DIGEST, status=OutcomeStatus.DONE, sent=True)
ORIGIN = audit_origin()


def test_intents_and_outcomes_are_read_back_in_order(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "run" / "journal.jsonl", now=lambda: NOW)
    journal.intend([GATED])
    journal.record([DONE])

    intent, outcome = read_journal(tmp_path / "run" / "journal.jsonl")

    assert (intent.kind, intent.topic, intent.action, intent.digest, intent.at) == (
        "intent",
        "a",
        "create",
        DIGEST,
        NOW,
    )
    assert (outcome.kind, outcome.status, outcome.sent) == ("outcome", OutcomeStatus.DONE, True)


def test_what_any_task_of_a_run_has_meant_to_change_is_known(tmp_path: Path) -> None:
    FileJournal(tmp_path / "journal-expand-1.jsonl").intend([GATED])
    FileJournal(tmp_path / "journal-configure-1.jsonl").record([replace(DONE, topic="b", sent=False)])

    assert intended_topics(tmp_path) == {"a"}


def test_a_try_is_overtaken_by_a_later_one_of_the_same_task_alone(tmp_path: Path) -> None:
    for name in ("create-1", "create-2", "create-10", "configure-11"):
        (tmp_path / f"journal-{name}.jsonl").touch()
    overtaken = {tries for tries in (1, 2, 10) if has_later_try(tmp_path / f"journal-create-{tries}.jsonl")}
    assert overtaken == {1, 2}


def test_an_intent_without_an_outcome_is_open(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal.jsonl")
    journal.intend([GATED])
    assert [entry.digest for entry in open_intents(read_journal(tmp_path / "journal.jsonl"))] == [DIGEST]

    journal.record([DONE])
    assert open_intents(read_journal(tmp_path / "journal.jsonl")) == ()


def test_a_line_torn_by_a_crash_is_left_out_and_the_next_run_starts_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    FileJournal(path).intend([GATED])
    with path.open("ab") as file:
        file.write(b'{"at":"2025-03-01T12:30:15Z","kind":"out')
    assert len(read_journal(path)) == 1

    FileJournal(path).record([DONE])

    assert [entry.kind for entry in read_journal(path)] == ["intent", "outcome"]


@pytest.mark.parametrize("line", [b'{"kind": "gossip"}', b'{"kind": "\xff"}'])
def test_a_line_that_is_whole_and_not_ours_is_an_error(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(ArtifactError, match=r"journal\.jsonl:1: not a line of a journal"):
        read_journal(path)


def test_a_missing_journal_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot be read"):
        read_journal(tmp_path / "journal.jsonl")


def test_a_journal_that_cannot_be_written_says_so_before_any_request(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    journal = FileJournal(tmp_path / "file" / "journal.jsonl")
    with pytest.raises(ArtifactError, match="nothing more is sent"):
        journal.intend([GATED])


def test_a_full_disk_says_so_before_any_request() -> None:
    journal = FileJournal(Path("/dev/full"))
    with pytest.raises(ArtifactError, match="No space left"):
        journal.intend([GATED])


FILLS_UP = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from topicops.edges.home.audit_log import AuditOrigin
from topicops.edges.home.journal import FileJournal
from topicops.model.errors import ArtifactError
from fakes.changes import create_topic, plan_of

path, limit = Path(sys.argv[1]), int(sys.argv[2])
journal = FileJournal(path)
plan = plan_of(*[create_topic(f"t{i}", (1, 2)) for i in range(3)])
journal.intend(plan.changes[:1])
size = path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + limit, resource.RLIM_INFINITY))
try:
    journal.intend(plan.changes[1:])
except ArtifactError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.intend(plan.changes[2:])
"""


@pytest.mark.parametrize("room", [0, 10, 250], ids=["none", "for a part of a line", "for one line of two"])
def test_a_disk_that_fills_up_within_a_batch_leaves_none_of_it_behind(tmp_path: Path, room: int) -> None:
    path = tmp_path / "journal.jsonl"

    ended = subprocess.run(
        [sys.executable, "-c", FILLS_UP, str(path), str(room), TESTS], capture_output=True, text=True, check=True
    )

    assert "cannot be written: File too large; nothing more is sent" in ended.stdout
    assert [entry.topic for entry in read_journal(path)] == ["t0", "t2"]
    assert path.read_bytes().count(b"\n") == 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "unsettled" / "local"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "run" / "journal-all-1.jsonl"


def found(folder: Path) -> tuple[OpenJournal, ...]:
    with abandoned(folder) as entries:
        return entries


def test_a_run_that_closed_all_it_began_leaves_nothing_behind(folder: Path, journal: Path) -> None:
    with registered(folder, journal, ORIGIN, audit_lines=0):
        FileJournal(journal).intend([GATED])
        FileJournal(journal).record([DONE])

    assert found(folder) == ()


def test_a_run_that_ended_in_the_middle_is_found_with_what_its_audit_lines_say(folder: Path, journal: Path) -> None:
    with registered(folder, journal, ORIGIN, audit_lines=7):
        FileJournal(journal).intend([GATED])

    (entry,) = found(folder)
    assert entry == OpenJournal(journal=str(journal), origin=ORIGIN, audit_lines=7)

    unregister(folder, entry)
    assert found(folder) == ()


def test_a_run_that_still_lives_is_left_alone(folder: Path, journal: Path) -> None:
    with registered(folder, journal, ORIGIN, audit_lines=0):
        FileJournal(journal).intend([GATED])
        assert found(folder) == ()


def test_a_folder_that_cannot_be_made_is_an_error_before_anything_is_sent(tmp_path: Path, journal: Path) -> None:
    (tmp_path / "unsettled").write_text("in the way")
    with (
        pytest.raises(ArtifactError, match="nothing was sent"),
        registered(tmp_path / "unsettled" / "x", journal, ORIGIN, audit_lines=0),
    ):
        raise AssertionError("it must not come this far")


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"journal": "\xff"}'])
def test_a_damaged_entry_is_named(folder: Path, content: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "x.json").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"x\.json: damaged"):
        found(folder)

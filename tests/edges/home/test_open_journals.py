"""Journals that may hold open intents are known to later runs, and those of living processes are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.changes import create_topic, plan_of
from topicops.edges.home.audit_log import AuditOrigin
from topicops.edges.home.journal import FileJournal, OpenJournal, abandoned, registered, unregister
from topicops.model.errors import ArtifactError
from topicops.model.runs.results import Outcome, OutcomeStatus

ORIGIN = AuditOrigin(
    environment="local",
    run="cli/1",
    plan="f" * 64,
    commit=None,
    principals={"create": "User:a", "expand": "User:a", "configure": "User:a", "delete": "User:d"},
)
(GATED,) = plan_of(create_topic("a", (1, 2))).changes
DONE = Outcome(topic="a", action="create", digest=GATED.digest, status=OutcomeStatus.DONE, sent=True)


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

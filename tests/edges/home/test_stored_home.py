"""A home in a folder, in memory and in an S3-compatible server: the same scenarios, and the same ends."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes.changes import audit_origin, create_topic, mutation_of, plan_of
from fixtures.stores import FaultyBucket, memory_home, s3_home
from topicops.edges import extras
from topicops.edges.durable_files import create_atomically, write_atomically
from topicops.edges.home.artifacts import QUIET_RUNS_KEPT, RUNS_KEPT, ArtifactStore, prune_runs, runs_folder
from topicops.edges.home.audit_files import (
    all_files,
    audited_environments,
    last_line_number,
    logged_topics,
    past_deletes,
    read_audit_log,
)
from topicops.edges.home.audit_log import FileAuditLog, StoredAuditLog, audit_log
from topicops.edges.home.journal import (
    FileJournal,
    abandoned,
    has_later_try,
    intended_topics,
    open_journals_folder,
    registered,
    unregister,
    unsettled,
)
from topicops.edges.home.memories import SeenTopics, mark_of
from topicops.edges.object_store import Bucket, StoreError, Version, open_bucket
from topicops.edges.places import Place, StoredPath, home_at
from topicops.model.cluster.snapshot import LastSeen
from topicops.model.errors import ArtifactError, MissingExtraError, UsageError
from topicops.model.runs.audit import chain_problems
from topicops.model.runs.results import QUIET_FILE, Mutation, Outcome, OutcomeStatus

ORIGIN = audit_origin()
(GATED,) = plan_of(create_topic("a", (1, 2))).changes
DONE = Outcome(topic="a", action="create", digest=GATED.digest, status=OutcomeStatus.DONE, sent=True)


@pytest.fixture(params=["folder", "memory", "s3"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "s3":
        return s3_home(request.getfixturevalue("s3_server"))
    return memory_home() if request.param == "memory" else tmp_path / "home"


def mutation(topic: str) -> Mutation:
    return replace(mutation_of(create_topic(topic, (1, 2)), digest="d" * 64), id_after=f"id-{topic}")


def log_of(home: Place, *topics: str) -> FileAuditLog | StoredAuditLog:
    log = audit_log(home / "audit", ORIGIN)
    for topic in topics:
        log.append([mutation(topic)])
    return log


def problems(home: Place) -> Sequence[str]:
    return [*chain_problems(read_audit_log(home / "audit", "local"))]


def test_what_is_written_is_read_and_what_is_removed_is_gone(home: Place) -> None:
    store = ArtifactStore(runs_folder(home, "cli", "manual: 2026 ü"))
    assert not store.has("notes.json")

    store.write_value("notes.json", ("one",))
    store.write_value("notes.json", ("two",))

    assert store.read_value("notes.json", tuple[str, ...]) == ("two",)
    store.remove("notes.json", "never-there.json")
    assert store.read_if_there("notes.json", tuple[str, ...]) is None
    with pytest.raises(ArtifactError, match="missing; the step that writes it has not run"):
        store.read_text("notes.json")


def test_one_of_many_makes_a_file_and_all_see_its_mark(home: Place) -> None:
    with ThreadPoolExecutor(8) as pool:
        tokens = {*pool.map(lambda _: mark_of(home), range(8))}

    assert len(tokens) == 1
    with pytest.raises(FileExistsError):
        create_atomically(home / "home.json", b"another")


def test_a_journal_is_open_until_its_last_outcome(home: Place) -> None:
    folder, path = open_journals_folder(home, "local"), runs_folder(home, "cli", "1") / "journal-all-1.jsonl"
    journal = FileJournal(path)

    with suppress(InterruptedError), registered(folder, path, ORIGIN, audit_lines=3):
        journal.intend([GATED])
        assert [*unsettled(folder)] == [("cli/1", frozenset({"a"}))]
        raise InterruptedError

    with abandoned(folder) as entries:
        [entry] = entries
        assert (entry.journal, entry.audit_lines) == (str(path), 3)
        FileJournal(path).record([DONE])
        unregister(folder, entry)
    assert [*unsettled(folder)] == []
    assert intended_topics(path.parent) == {"a"}
    assert not has_later_try(path)
    FileJournal(path.parent / "journal-all-2.jsonl").intend([GATED])
    assert has_later_try(path)


def test_an_audit_log_is_one_chain_whoever_writes_it(home: Place) -> None:
    first = log_of(home, "a", "b")
    log_of(home, "c").append([mutation("d"), mutation("e")])
    first.append([mutation("f")])

    log = read_audit_log(home / "audit", "local")

    assert [line.topic for line in log.lines] == [*"abcdef"]
    assert (problems(home), log.head) == ([], first.check())
    assert last_line_number(home / "audit", "local") == 6
    assert audited_environments(home / "audit") == ("local",)
    assert logged_topics(home / "audit", "local", ["id-b", "id-z"], "create") == {"id-b"}
    assert past_deletes(home / "audit", "local", ["a"]) == {}


def test_many_writers_at_once_lose_no_line(home: Place) -> None:
    with ThreadPoolExecutor(4) as pool:
        [*_] = pool.map(lambda number: log_of(home, f"{number}-a", f"{number}-b", f"{number}-c"), range(4))

    assert problems(home) == []
    assert len(read_audit_log(home / "audit", "local").lines) == 12


def test_topics_that_are_missed_are_remembered(home: Place) -> None:
    seen = SeenTopics(home, "local", "cluster")
    assert seen.missing(()) == {}

    seen.write([("a", "id-a"), ("b", "id-b")], at="2026-01-01T00:00:00Z", missed={})

    assert seen.missing({"a"}) == {"b": LastSeen(identity="id-b", at="2026-01-01T00:00:00Z")}


def test_old_runs_go_and_the_audit_log_stays(home: Place) -> None:
    log_of(home, "a")
    for run in ("1", "2"):
        ArtifactStore(runs_folder(home, "cli", run)).write_text("report.txt", run)
    ArtifactStore(runs_folder(home, "cli", "2")).write_text(QUIET_FILE, "{}")
    now = datetime.now(UTC)

    assert prune_runs(home, now=now) == ()
    assert [run.name for run in prune_runs(home, now=now + QUIET_RUNS_KEPT + timedelta(minutes=1))] == ["2"]
    assert [run.name for run in prune_runs(home, now=now + RUNS_KEPT + timedelta(minutes=1))] == ["1"]
    assert not ArtifactStore(runs_folder(home, "cli", "1")).has("report.txt")
    assert problems(home) == []


# ---- the chain in a store ----


@pytest.fixture
def stored() -> StoredPath:
    return memory_home()


def parts_of(home: StoredPath) -> list[str]:
    return [str(part).removeprefix(f"{home.bucket.url}/") for part in all_files(home / "audit", "local")]


def test_each_append_is_an_object_that_names_its_first_line(stored: StoredPath) -> None:
    log_of(stored, "a").append([mutation("b"), mutation("c")])
    log_of(stored, "d")

    assert parts_of(stored) == [f"audit/local.jsonl/{number:012}" for number in (1, 2, 4)]


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        pytest.param("remove the second", "line 2 does not follow the line before it", id="missing"),
        pytest.param("remove the last", "the end is missing", id="missing at the end"),
        pytest.param("change the second", "line 3 does not follow the line before it", id="changed"),
        pytest.param("swap the first two", "line 3 does not follow the line before it", id="reordered"),
    ],
)
def test_a_chain_that_was_touched_is_found_and_not_continued(stored: StoredPath, harm: str, found: str) -> None:
    log_of(stored, "a", "b", "c", "d")
    bucket, keys = stored.bucket, parts_of(stored)
    match harm:
        case "remove the second":
            bucket.remove(keys[1])
        case "remove the last":
            bucket.remove(keys[3])
        case "change the second":
            bucket.write(keys[1], bucket.read(keys[1]).content.replace(b"User:applier", b"User:another"))
        case _:
            first, second = (bucket.read(key).content for key in keys[:2])
            bucket.write(keys[0], second)
            bucket.write(keys[1], first)

    assert any(found in problem for problem in problems(stored)), problems(stored)
    if "last" in harm:
        with pytest.raises(ArtifactError, match="nothing is sent"):
            log_of(stored).check()


def test_a_paused_writer_of_a_journal_that_was_taken_over_writes_nothing_more(stored: StoredPath) -> None:
    path = stored / "runs" / "journal-all-1.jsonl"
    paused = FileJournal(path)
    paused.intend([GATED])
    FileJournal(path).record([DONE])

    with pytest.raises(ArtifactError, match="another process has taken it over; nothing more is sent"):
        paused.record([DONE])


# ---- what a store may do ----


def of_first(fault: str) -> FaultyBucket:
    from obstore.store import MemoryStore

    return FaultyBucket("s3://memory/faulty", MemoryStore(), lambda number, _: fault if number == 1 else "")


@pytest.mark.parametrize("fault", ["lost", "503", "twice"])
def test_a_write_that_meets_a_fault_is_made_once(fault: str) -> None:
    bucket = of_first(fault)
    version = bucket.create("a", b"1")
    assert bucket.read("a").content == b"1"

    bucket = of_first(fault)
    bucket.write("b", b"1")
    bucket.replace("b", b"2", bucket.read("b").version)
    assert (bucket.read("b").content, bool(version)) == (b"2", True)


class _Careless(Bucket):
    """A store that takes each write, whatever its condition."""

    def _put(self, key: str, content: bytes, mode: str | Version) -> Version:
        return super()._put(key, content, "overwrite")


class _Half(Bucket):
    """A store that knows If-None-Match alone."""

    def _put(self, key: str, content: bytes, mode: str | Version) -> Version:
        return super()._put(key, content, mode if mode == "create" else "overwrite")


@pytest.mark.parametrize("kind", [_Careless, _Half])
def test_a_store_that_ignores_conditions_is_refused_at_the_first_write(kind: type[Bucket]) -> None:
    from obstore.store import MemoryStore

    home = StoredPath(kind("s3://memory/careless", MemoryStore()))

    with pytest.raises(ArtifactError, match="ignores the conditions of writes"):
        mark_of(home)
    with pytest.raises(StoreError):
        write_atomically(home / "x", b"")
    assert [*home.glob("*")] == []


def test_a_url_that_is_no_home_is_refused() -> None:
    for url in ("s3://", "http://bucket/x", "file://host/x"):
        with pytest.raises(UsageError, match="TOPICOPS_HOME"):
            home_at(url)
    assert home_at("file:///some/where%20else") == Path("/some/where else")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    open_bucket.cache_clear()
    monkeypatch.setitem(extras._MODULES, "store", ("no_such_module",))  # type: ignore[index]

    with pytest.raises(MissingExtraError, match=r"pip install 'topicops\[store\]'"):
        home_at("s3://bucket/prefix")


def test_no_login_is_in_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    open_bucket.cache_clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAKNOWN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    home = home_at("s3://bucket/prefix")
    assert isinstance(home, StoredPath)

    with pytest.raises(ArtifactError) as error:
        ArtifactStore(home / "runs").read_text("plan.json")

    assert "127.0.0.1:1" in str(error.value)
    assert not any(secret in str(error.value) for secret in ("AKIAKNOWN", "hunter2"))


def test_a_fork_of_a_process_that_used_the_store_says_so_and_does_not_hang(stored: StoredPath) -> None:
    write_atomically(stored / "a", b"1")
    if (child := os.fork()) == 0:
        try:
            write_atomically(stored / "a", b"2")
        except StoreError as error:
            os._exit(error.errno or 1)
        os._exit(0)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == errno.EDEADLK
    assert (stored / "a").read_bytes() == b"1"

"""The audit log: every mutation a line, and every line where it was."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fakes.changes import audit_origin, create_topic, mutation_of
from topicops.edges.home.audit_files import audited_environments, logged_topics, read_audit_log
from topicops.edges.home.audit_log import FileAuditLog, full_size
from topicops.model.errors import ArtifactError, UsageError
from topicops.model.runs.audit import FIRST, AuditHead, chain_problems, hash_of, head_of
from topicops.model.runs.results import Mutation

ORIGIN = replace(audit_origin(), commit="c0ffee", approvers={"d" * 64: "User:ann"})


def mutation(topic: str, digest: str = "d" * 64) -> Mutation:
    change = create_topic(topic, (1, 2), configs={"retention.ms": "1"})
    return replace(mutation_of(change, digest=digest), id_after="HH0Qss9WRuCwD0_yU96USQ")


def log_of(folder: Path, *topics: str, full_at: int | None = None) -> FileAuditLog:
    log = FileAuditLog(folder, ORIGIN, full_at=full_at)
    for topic in topics:
        log.append([mutation(topic)])
    return log


full_log_of = partial(log_of, full_at=1)
"""Each line makes the file full."""


def problems(folder: Path, noted: AuditHead | None = None) -> list[str]:
    return [*chain_problems(read_audit_log(folder, "local"), noted)]


def lines(folder: Path) -> list[bytes]:
    return (folder / "local.jsonl").read_bytes().splitlines()


def rewrite(folder: Path, changed: list[bytes]) -> None:
    (folder / "local.jsonl").write_bytes(b"".join(line + b"\n" for line in changed))


def test_a_line_names_who_approved_its_own_change(tmp_path: Path) -> None:
    log = FileAuditLog(tmp_path, replace(ORIGIN, approvers={"a" * 64: "alice", "b" * 64: "bob"}))
    log.append([mutation(name, name * 64) for name in ("a", "b", "c")])
    assert [json.loads(line)["approver"] for line in lines(tmp_path)] == ["alice", "bob", None]


def test_a_line_has_the_comment_of_its_approver_if_there_is_one(tmp_path: Path) -> None:
    log = FileAuditLog(tmp_path, replace(ORIGIN, comments={"a" * 64: "the last reader left"}))
    log.append([mutation(name, name * 64) for name in ("a", "b")])
    assert [json.loads(line).get("comment") for line in lines(tmp_path)] == ["the last reader left", None]
    assert [line.comment or "" for line in read_audit_log(tmp_path, "local").lines] == ["the last reader left", ""]


def test_a_line_says_who_sent_what_why_and_what_came_of_it(tmp_path: Path) -> None:
    log_of(tmp_path, "a", "b")

    first, second = map(json.loads, lines(tmp_path))

    assert {name: first[name] for name in first if name not in ("at", "request")} == {
        "n": 1,
        "previous": FIRST,
        "environment": "local",
        "run": "cli/1",
        "plan": "f" * 64,
        "commit": "c0ffee",
        "approver": "User:ann",
        "principal": "User:applier",
        "action": "create",
        "topic": "a",
        "digest": "d" * 64,
        "requests": 1,
        "answer": "accepted",
        "outcome": "done",
        "topic_id_before": None,
        "topic_id_after": "HH0Qss9WRuCwD0_yU96USQ",
    }
    assert first["request"]["after"]["assignment"] == {"0": [1, 2]}
    assert first["at"].endswith("Z")
    assert (second["n"], second["previous"]) == (2, hash_of(lines(tmp_path)[0]))


def test_a_whole_log_has_no_problems_and_its_head_says_where_it_ends(tmp_path: Path) -> None:
    end = log_of(tmp_path, "a", "b", "c").check()

    assert (end.count, end.hash) == (3, hash_of(lines(tmp_path)[-1]))
    assert head_of((tmp_path / "local.head").read_text()) == end
    assert problems(tmp_path) == []
    assert audited_environments(tmp_path) == ("local",)


def as_x(line: bytes) -> bytes:
    """The line, of topic x."""
    return re.sub(rb'"topic":"."', b'"topic":"x"', line)


def left(lines_left: Callable[[bytes, bytes, bytes], list[bytes]]) -> Callable[[Path], None]:
    """The damage that leaves these of three lines."""
    return lambda folder: rewrite(folder, lines_left(*lines(folder)))


changed_last_line = left(lambda a, b, c: [a, b, as_x(c)])
cut_tail = left(lambda a, b, c: [a, b])
emptied = left(lambda a, b, c: [])


def removed(folder: Path) -> None:
    (folder / "local.jsonl").unlink()


def cut_head(folder: Path) -> None:
    (folder / "local.head").unlink()


DAMAGES = [
    pytest.param(left(lambda a, b, c: [a, as_x(b), c]), "line 3 does not follow", id="a changed line"),
    pytest.param(changed_last_line, "line 3 is not the one that its head file says", id="the last line changed"),
    pytest.param(left(lambda a, b, c: [a, c]), "line 2 does not follow", id="a missing line"),
    pytest.param(left(lambda a, b, c: [b, c]), "lines 1 to 1 are missing", id="the first line missing"),
    pytest.param(left(lambda a, b, c: [a, c, b]), "line 2 does not follow", id="lines in another order"),
    pytest.param(left(lambda a, b, c: [a, b, b, c]), "line 3 does not follow", id="a line inserted"),
    pytest.param(left(lambda a, b, c: [a, b"gossip", c]), "line 2 cannot be read", id="a line of no sense"),
    pytest.param(cut_tail, "it ends with line 2, and its head file says 3", id="a cut tail"),
    pytest.param(emptied, "it ends with line 0, and its head file says 3", id="all lines gone"),
    pytest.param(removed, "it ends with line 0, and its head file says 3", id="the file gone"),
    pytest.param(cut_head, "its head file is missing", id="no head"),
]


@pytest.mark.parametrize(("damage", "problem"), DAMAGES)
def test_damage_is_found(tmp_path: Path, damage: Callable[[Path], None], problem: str) -> None:
    log_of(tmp_path, "a", "b", "c")
    damage(tmp_path)

    assert problem in problems(tmp_path)[0]


@pytest.mark.parametrize("damage", [changed_last_line, cut_tail, emptied, removed, cut_head])
def test_nothing_is_added_to_a_log_whose_end_is_not_as_it_was_left(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    log = log_of(tmp_path, "a", "b", "c")
    damage(tmp_path)
    before = read_audit_log(tmp_path, "local").entries

    with pytest.raises(ArtifactError, match="nothing is sent: check with `topicops audit verify`"):
        log.append([mutation("d")])

    assert read_audit_log(tmp_path, "local").entries == before


def test_a_log_written_anew_with_its_head_is_found_by_a_head_that_was_noted(tmp_path: Path) -> None:
    noted = log_of(tmp_path, "a", "b").check()
    for name in ("local.jsonl", "local.head"):
        (tmp_path / name).unlink()
    log_of(tmp_path, "a", "x", "c")

    assert problems(tmp_path) == []
    assert "line 2 is not the one that the head that was noted says" in problems(tmp_path, noted)[0]


def test_a_log_that_grew_since_still_holds_a_head_that_was_noted(tmp_path: Path) -> None:
    noted = log_of(tmp_path, "a", "b").check()
    log_of(tmp_path, "c")

    assert problems(tmp_path, noted) == []


def topics(folder: Path) -> list[str]:
    return [line.topic for line in read_audit_log(folder, "local").lines]


def test_a_line_that_a_crash_tore_off_is_kept_in_a_file_beside(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a")
    with (tmp_path / "local.jsonl").open("ab") as file:
        file.write(b'{"n":2,"previous":"')
    assert "line 2 is torn" in problems(tmp_path)[0]

    log.append([mutation("b")])

    assert topics(tmp_path) == ["a", "b"]
    assert problems(tmp_path) == []
    [kept] = tmp_path.glob("local.torn-2-*")
    assert kept.read_bytes() == b'{"n":2,"previous":"'


def test_a_last_line_that_lost_only_its_line_end_gets_it_back(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a", "b", "c")
    content = (tmp_path / "local.jsonl").read_bytes()
    (tmp_path / "local.jsonl").write_bytes(content[:-1])
    assert problems(tmp_path) == []

    assert log.check().count == 3
    assert (tmp_path / "local.jsonl").read_bytes() == content
    log.append([mutation("d")])
    assert topics(tmp_path) == ["a", "b", "c", "d"]
    assert problems(tmp_path) == []


@pytest.mark.parametrize("cut", [2, 100])
def test_nothing_is_taken_off_that_the_head_has_counted(tmp_path: Path, cut: int) -> None:
    log = log_of(tmp_path, "a", "b")
    content = (tmp_path / "local.jsonl").read_bytes()[:-cut]
    (tmp_path / "local.jsonl").write_bytes(content)

    for use in (log.check, lambda: log.append([mutation("c")])):
        with pytest.raises(ArtifactError, match=r"line 2 is torn, and its head file counts it.*nothing is sent"):
            use()

    assert (tmp_path / "local.jsonl").read_bytes() == content
    assert [*tmp_path.glob("*torn*")] == []


def test_a_foreign_line_without_a_line_end_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a", "b")
    content = (tmp_path / "local.jsonl").read_bytes() + lines(tmp_path)[0]
    (tmp_path / "local.jsonl").write_bytes(content)

    with pytest.raises(ArtifactError, match="line 3 does not follow"):
        log.check()
    assert (tmp_path / "local.jsonl").read_bytes() == content


# --- full files -----------------------------------------------------------------------------------------------------


def test_a_full_file_is_followed_by_the_next_one_and_the_chain_goes_on(tmp_path: Path) -> None:
    end = full_log_of(tmp_path, "a", "b", "c").check()

    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["local.head", "local.jsonl", "local.jsonl.000000000001", "local.jsonl.000000000002"]
    assert topics(tmp_path) == ["a", "b", "c"]
    assert problems(tmp_path) == []
    assert (end.count, end) == (3, read_audit_log(tmp_path, "local").end)
    assert audited_environments(tmp_path) == ("local",)
    log_of(tmp_path, "d")
    assert [entry.line.n for entry in read_audit_log(tmp_path, "local").entries if entry.line] == [1, 2, 3, 4]
    assert problems(tmp_path) == []


def changed_full_file(folder: Path) -> None:
    file = folder / "local.jsonl.000000000002"
    file.write_bytes(file.read_bytes().replace(b'"topic":"b"', b'"topic":"x"'))


def without_the_first_file(folder: Path) -> None:
    (folder / "local.jsonl.000000000001").unlink()


def without_the_second_file(folder: Path) -> None:
    (folder / "local.jsonl.000000000002").unlink()


def files_in_another_order(folder: Path) -> None:
    (folder / "local.jsonl.000000000002").rename(folder / "local.jsonl.000000000000")


DAMAGED_FILES = [
    pytest.param(changed_full_file, "line 3 does not follow", id="a line changed in a full file"),
    pytest.param(without_the_first_file, "lines 1 to 1 are missing", id="the oldest file gone"),
    pytest.param(without_the_second_file, "line 2 does not follow", id="a file between gone"),
    pytest.param(removed, "it ends with line 2, and its head file says 3", id="the newest file gone"),
    pytest.param(files_in_another_order, "line 3 does not follow", id="files in another order"),
]


@pytest.mark.parametrize(("damage", "problem"), DAMAGED_FILES)
def test_damage_is_found_over_all_files(tmp_path: Path, damage: Callable[[Path], None], problem: str) -> None:
    full_log_of(tmp_path, "a", "b", "c")
    damage(tmp_path)

    assert any(problem in found for found in problems(tmp_path)), problems(tmp_path)


def test_older_files_that_were_moved_away_do_not_stop_the_log(tmp_path: Path) -> None:
    log = full_log_of(tmp_path, "a", "b", "c")
    without_the_first_file(tmp_path)
    without_the_second_file(tmp_path)

    log.append([mutation("d")])

    assert problems(tmp_path)[0].startswith("lines 1 to 2 are missing: put the older files back")
    assert read_audit_log(tmp_path, "local").end.count == 4


@pytest.mark.parametrize("damage", [changed_full_file, removed, without_the_second_file])
def test_a_log_whose_newest_lines_do_not_lead_to_its_head_is_not_continued(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    log = full_log_of(tmp_path, "a")
    head = (tmp_path / "local.head").read_text()
    log = full_log_of(tmp_path, "b", "c")
    (tmp_path / "local.head").write_text(head)  # as after a crash between the two writes
    damage(tmp_path)

    if damage is removed:  # the newest line is gone and no head counts it: nothing shows that it was there
        assert log.check().count == 2
        return
    with pytest.raises(ArtifactError, match="nothing is sent"):
        log.check()


def test_a_search_for_created_topics_reads_what_it_needs_and_no_more(tmp_path: Path) -> None:
    full_log_of(tmp_path, "a", "b", "c")
    without_the_first_file(tmp_path)
    (tmp_path / "local.jsonl.000000000001").mkdir()  # reading this one is an error

    assert logged_topics(tmp_path, "local", [], "create") == frozenset()
    assert logged_topics(tmp_path, "local", ["HH0Qss9WRuCwD0_yU96USQ"], "create") == {"HH0Qss9WRuCwD0_yU96USQ"}
    with pytest.raises(ArtifactError, match="cannot be read"):
        logged_topics(tmp_path, "local", ["another"], "create")
    assert logged_topics(tmp_path, "nowhere", ["another"], "create") == frozenset()


@pytest.mark.parametrize("written", ["0", "-1", "1.5", "many", "1" * 20, "²"])
def test_a_size_of_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("TOPICOPS_AUDIT_FILE_MIB", written)
    with pytest.raises(UsageError, match="TOPICOPS_AUDIT_FILE_MIB"):
        full_size()


def test_the_size_of_a_file_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_AUDIT_FILE_MIB", "3")
    assert full_size() == 3 << 20
    monkeypatch.delenv("TOPICOPS_AUDIT_FILE_MIB")
    assert full_size() == 16 << 20


def test_lines_whose_head_a_crash_kept_back_are_taken_over(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a")
    head = (tmp_path / "local.head").read_text()
    log.append([mutation("b"), mutation("c")])
    (tmp_path / "local.head").write_text(head)
    assert problems(tmp_path) == []

    log.append([mutation("d")])

    assert log.check().count == 4
    assert problems(tmp_path) == []


def test_a_line_of_any_length_is_continued(tmp_path: Path) -> None:
    long = create_topic("long", *[(1, 2, 3)] * 20_000)
    log = log_of(tmp_path, "a")
    log.append([mutation_of(long)])
    log.append([mutation("b")])

    assert problems(tmp_path) == []
    assert len(lines(tmp_path)[1]) > 1 << 17


@pytest.mark.parametrize(("write", "full_files"), [(log_of, 0), (full_log_of, 40)])
def test_writers_side_by_side_make_one_chain(
    tmp_path: Path, write: Callable[..., FileAuditLog], full_files: int
) -> None:
    threads = [threading.Thread(target=write, args=(tmp_path, *map(str, range(10)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(topics(tmp_path)) == 40
    assert problems(tmp_path) == []
    assert len([*tmp_path.glob("local.jsonl.*")]) in range(full_files // 4, full_files + 1)


FILLS_UP = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from edges.home.test_audit_log import log_of, mutation
from topicops.model.errors import ArtifactError

folder = Path(sys.argv[1])
log = log_of(folder, "a")
size = (folder / "local.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
try:
    log.append([mutation("b")])
except ArtifactError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append([mutation("c")])
"""


def test_a_disk_that_fills_up_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[2])

    ended = subprocess.run(
        [sys.executable, "-c", FILLS_UP, str(tmp_path), tests], capture_output=True, text=True, check=True
    )

    assert "the audit log cannot be written: File too large; nothing more is sent" in ended.stdout
    assert [line.topic for line in read_audit_log(tmp_path, "local").lines] == ["a", "c"]
    assert problems(tmp_path) == []


@pytest.mark.parametrize("text", ["", "12", "x:" + FIRST, "12:" + "g" * 64, f"-1:{FIRST}"])
def test_a_head_of_no_sense_is_none(text: str) -> None:
    assert head_of(text) is None


def test_a_head_that_a_power_cut_has_brought_back_is_followed_by_the_lines_after_it(tmp_path: Path) -> None:
    log, head = log_of(tmp_path, "a"), tmp_path / "local.head"
    old = head.read_bytes()
    log_of(tmp_path, "b", "c")
    head.write_bytes(old)
    assert problems(tmp_path) == []

    log.append([mutation("d")])

    assert topics(tmp_path) == ["a", "b", "c", "d"]
    assert (problems(tmp_path), head_of(head.read_text()).count) == ([], 4)


def test_lines_and_head_are_on_the_disk_when_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, synced = log_of(tmp_path, "a"), list[os.stat_result]()
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle)))

    log.append([mutation("b")])

    lines_written, head_written = synced
    assert os.path.samestat(lines_written, (tmp_path / "local.jsonl").stat())
    assert os.path.samestat(head_written, (tmp_path / "local.head").stat())

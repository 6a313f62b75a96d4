"""What `topicops audit` prints, and when it says that the account is not whole."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fakes.builders import configure_change, delete_change, expand_change
from fakes.changes import audit_origin, create_topic, mutation_of
from topicops.cli import run
from topicops.edges.home.audit_files import read_audit_log
from topicops.edges.home.audit_log import FileAuditLog
from topicops.features.ask.audit.audited import AuditedLines
from topicops.model.cluster.broker_defaults import DefaultOnBrokers
from topicops.model.runs.results import Mutation, OutcomeStatus

NOW = datetime(2025, 3, 1, 12, 30, 15, tzinfo=UTC)
ORIGIN = replace(audit_origin("cli/r1", environment="prod"), approvers={"d" * 64: "ann"})


def mutation(topic: str, *, answer: str = "accepted", status: OutcomeStatus = OutcomeStatus.DONE) -> Mutation:
    return replace(mutation_of(create_topic(topic, (1, 2)), answer=answer, status=status), id_after="id-1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two logs: three mutations of two runs in prod, one in test."""
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    folder = tmp_path / "audit"
    FileAuditLog(folder, ORIGIN, now=lambda: NOW).append([mutation("a"), mutation("b")])
    later = FileAuditLog(folder, replace(ORIGIN, run="dag/r2", approvers={}), now=lambda: NOW)
    later.append([mutation("a", answer="POLICY_VIOLATION (44): no", status=OutcomeStatus.FAILED)])
    FileAuditLog(folder, replace(ORIGIN, environment="test"), now=lambda: NOW).append([mutation("a")])
    return folder


def test_a_run_names_everybody_who_approved_one_of_its_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    origin = replace(ORIGIN, approvers={"b" * 64: "alice (review)", "c" * 64: "bob (review)"})
    mutations = [replace(mutation(name), digest=name * 64) for name in ("a", "b", "c")]
    FileAuditLog(tmp_path / "audit", origin, now=lambda: NOW).append(mutations)

    assert run(["audit", "runs"]) == 0

    assert "by User:applier, approved by alice (review), bob (review), commit none" in capsys.readouterr().out


def test_a_topic_shows_who_changed_it_when_and_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "topic", "a", "--environment", "prod"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "2025-03-01T12:30:15Z create a: done",
        "  partitions: 1",
        "  prod, run cli/r1, by User:applier, approved by ann",
        "  plan ffffffffffff, commit none, line 1, topic id none -> id-1",
        "2025-03-01T12:30:15Z create a: failed; POLICY_VIOLATION (44): no",
        "  partitions: 1",
        "  prod, run dag/r2, by User:applier",
        "  plan ffffffffffff, commit none, line 3, topic id none -> id-1",
    ]


def test_a_line_shows_the_values_before_and_after_and_a_delete_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    configure = replace(
        configure_change("a"), configs_before={"retention.ms": "2592000000"}, configs={"retention.ms": "1209600000"}
    )
    changes = (configure, expand_change("a"), replace(delete_change("a"), reason="Replaced by b."))
    sent = [replace(mutation_of(change), id_after="id-1") for change in changes]
    FileAuditLog(tmp_path / "audit", ORIGIN, now=lambda: NOW).append(sent)

    assert run(["audit", "topic", "a"]) == 0

    out = capsys.readouterr().out
    assert "  retention.ms: 2592000000 (30d) -> 1209600000 (14d)\n" in out
    assert f"  partitions: {changes[1].partitions_before} -> {changes[1].partitions}\n" in out
    assert "  reason: Replaced by b.\n" in out


@pytest.mark.parametrize(
    ("defaults", "said"),
    [
        ({"broker_defaults": {"retention.ms": "604800000"}}, "604800000 (7d, broker default)"),
        (
            {"differing_defaults": {"retention.ms": (DefaultOnBrokers("3600000", (1,)), DefaultOnBrokers(None, (2,)))}},
            "3600000 (1h, default of broker 1), (default of broker 2, not known)",
        ),
        ({}, "(broker default, not known)"),
    ],
)
def test_a_line_shows_the_default_that_the_plan_showed(
    defaults: dict[str, Any],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    configure = replace(
        configure_change("a"), configs_before={"retention.ms": None}, configs={"retention.ms": "1209600000"}, **defaults
    )
    FileAuditLog(tmp_path / "audit", ORIGIN, now=lambda: NOW).append([mutation_of(configure)])

    assert run(["audit", "topic", "a"]) == 0

    assert f"  retention.ms: {said} -> 1209600000 (14d, override)\n" in capsys.readouterr().out


def test_lines_of_moves_say_what_a_step_sent_and_which_run_accepted_it(tmp_path: Path) -> None:
    rate = Mutation(
        action="reassign",
        topic="",
        digest="",
        id_before=None,
        id_after=None,
        request={"what": "rate", "broker": 2, "before": {"rate": None}, "after": {"rate": 1000}},
        requests=1,
        answer="accepted",
        status=OutcomeStatus.DONE,
    )
    rows = {"before": {"assignment": {"0": [1]}}, "after": {"assignment": {"0": [1, 2, 3]}}}
    request = {"what": "start", "accepted_by": "cli/r1", "partitions": [0], **rows}
    start = replace(rate, topic="a", digest="d", request=request, status=OutcomeStatus.MOVING)
    start = replace(start, id_before="id", id_after="id")
    origin = replace(ORIGIN, plan="", principals={"reassign": "User:mover"}, approvers={"d": "ann"})
    log = FileAuditLog(tmp_path, origin, now=lambda: NOW)

    log.append([rate, start])

    assert AuditedLines(lines=read_audit_log(tmp_path, "prod").lines).text().splitlines() == [
        "2025-03-01T12:30:15Z reassign broker 2: done",
        "  rate for all moves of the broker",
        "  rate: none -> 1000",
        "  prod, run cli/r1, by User:mover",
        "  plan none, commit none, line 1, topic id none -> none",
        "2025-03-01T12:30:15Z reassign a: moving",
        "  start of a move that cli/r1 accepted",
        "  partition 0: [1] -> [1, 2, 3]",
        "  prod, run cli/r1, by User:mover, approved by ann",
        "  plan none, commit none, line 2, topic id id -> id",
    ]


@pytest.mark.parametrize("defaults", [7, {"retention.ms": 7}, {"retention.ms": [{"value": 1}]}])
def test_defaults_that_cannot_be_read_are_not_known(folder: Path, defaults: object) -> None:
    request = {"before": {"configs": {"retention.ms": None}}, "after": {"configs": {"retention.ms": "9"}}}
    line = replace(
        read_audit_log(folder, "prod").lines[0], action="configure", request={**request, "defaults": defaults}
    )

    assert "retention.ms: (broker default, not known) -> 9 (9ms, override)" in AuditedLines(lines=[line]).text()


def test_runs_are_listed_with_how_they_ended(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "runs"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "2025-03-01T12:30:15Z cli/r1 prod: 2 done, by User:applier, approved by ann, commit none",
        "2025-03-01T12:30:15Z dag/r2 prod: 1 failed, by User:applier, commit none",
        "2025-03-01T12:30:15Z cli/r1 test: 1 done, by User:applier, approved by ann, commit none",
    ]


@pytest.mark.parametrize(
    ("since", "runs", "lines"), [("2025-03-01", 3, 3), ("2025-03-01T12:30:15Z", 3, 3), ("2025-03-02", 0, 0)]
)
def test_since_leaves_out_what_is_older(
    folder: Path, since: str, runs: int, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "runs", "--since", since, "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == runs
    assert run(["audit", "topic", "a", "--since", since, "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["lines"]) == lines


@pytest.mark.parametrize("written", ["cli/r1", "r1"])
def test_a_run_is_found_by_its_whole_name_or_its_id(
    folder: Path, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    assert run(["audit", "run", written, "--format", "json"]) == 0

    found = json.loads(capsys.readouterr().out)["lines"]
    assert [(line["environment"], line["topic"]) for line in found] == [("prod", "a"), ("prod", "b"), ("test", "a")]


def test_a_name_that_nobody_touched_is_said_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "topic", "z"]) == 0
    assert capsys.readouterr().err == "no mutation of topic z is in the audit log\n"


def test_whole_logs_are_said_to_be_whole_and_what_cannot_be_seen_is_said_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "verify"]) == 0

    out = capsys.readouterr().out
    assert "prod: 3 lines, whole" in out
    assert "test: 1 line, whole" in out
    assert "keep the end that is shown here elsewhere" in out


def test_a_changed_line_is_an_exit_status_and_a_word_beside_every_answer(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = folder / "prod.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"topic":"b"', b'"topic":"c"'))

    assert run(["audit", "verify", "--environment", "prod"]) == 1
    assert "line 3 does not follow the line before it" in capsys.readouterr().out
    assert run(["audit", "topic", "a"]) == 0
    assert "the audit log is not whole" in capsys.readouterr().err


def test_a_log_written_anew_is_found_by_an_end_that_was_noted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "verify", "-e", "prod", "--format", "json"]) == 0
    end = json.loads(capsys.readouterr().out)["logs"][0]["end"]
    for path in folder.glob("prod.*"):
        path.unlink()
    FileAuditLog(folder, ORIGIN).append([mutation("a"), mutation("b"), mutation("a")])

    assert run(["audit", "verify", "-e", "prod"]) == 0
    assert run(["audit", "verify", "-e", "prod", "--head", end]) == 1
    assert "line 3 is not the one that the head that was noted says" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["verify", "-e", "nowhere"], "there are logs of prod, test", id="no such log"),
        pytest.param(["verify", "--head", "1:ab"], "name its environment with --environment", id="a head of which log"),
        pytest.param(["verify", "-e", "prod", "--head", "1:ab"], "COUNT:HASH", id="no head"),
    ],
)
def test_what_cannot_be_meant_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["audit", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_no_control_character_of_an_answer_reaches_the_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FileAuditLog(folder, ORIGIN).append([mutation("e", answer="\x1b[31mred\x9b")])
    for output in ("text", "json"):
        assert run(["audit", "topic", "e", "--format", output]) == 0
        assert capsys.readouterr().out.replace("\n", "").isprintable()

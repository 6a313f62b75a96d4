"""The lines of the audit log for what a step of moves sends."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from topicops.edges.home.audit_files import read_audit_log
from topicops.edges.home.audit_log import AuditOrigin, FileAuditLog
from topicops.features.moves.carrying.audited import audited
from topicops.features.moves.carrying.values import Sent
from topicops.features.moves.record import PartitionMove, TopicMove
from topicops.model.plans.changes import MoveReason
from topicops.model.runs.audit import are_whole
from topicops.model.runs.results import OutcomeStatus

AT = datetime(2026, 1, 1, tzinfo=UTC)
MOVES = {
    "bills": TopicMove(
        topic="bills",
        identity="id-of-bills",
        why=MoveReason.FACTOR,
        digest="d1",
        run="cli/accepted",
        approver="ann",
        accepted_at=AT,
        partitions={0: PartitionMove(origin=(1,), target=(1, 2, 3))},
    )
}
START = Sent(what="start", topic="bills", partitions=(0,), before={"0": [1]}, after={"0": [1, 2, 3]})


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(START, OutcomeStatus.MOVING, id="a start"),
        pytest.param(Sent(what="cancel", topic="bills"), OutcomeStatus.DONE, id="a cancel"),
        pytest.param(Sent(what="end", topic="bills", answer="done"), OutcomeStatus.DONE, id="an end"),
        pytest.param(Sent(what="end", topic="bills", answer="dropped: gone"), OutcomeStatus.REFUSED, id="dropped"),
        pytest.param(
            Sent(what="start", topic="bills", answer="no clear answer: late"), OutcomeStatus.UNKNOWN, id="late"
        ),
        pytest.param(Sent(what="rate", broker=2, answer="X (42): no"), OutcomeStatus.FAILED, id="refused"),
    ],
)
def test_the_outcome_of_a_line_follows_the_answer(sent: Sent, status: OutcomeStatus) -> None:
    assert audited(sent, MOVES).status is status


def test_each_line_says_whose_move_it_is_and_the_log_stays_whole(tmp_path: Path) -> None:
    rate = Sent(what="rate", broker=2, before={"rate": None}, after={"rate": 1000})
    cancel = Sent(what="cancel", topic="bills", partitions=(0,), before=START.after, after=START.before)
    end = Sent(what="end", topic="bills", partitions=(0,), answer="done")
    origin = AuditOrigin(
        environment="local",
        run="cli/step",
        plan="",
        commit=None,
        principals={"reassign": "User:m"},
        approvers={"d1": "ann"},
    )

    origin = replace(origin, approvers={"d1": "ann"})
    FileAuditLog(tmp_path, origin, now=lambda: AT).append([audited(sent, MOVES) for sent in (rate, START, cancel, end)])

    file = read_audit_log(tmp_path, "local")
    assert are_whole([file])
    [of_rate, of_start, of_cancel, of_end] = file.lines
    assert (of_rate.topic, of_rate.digest, of_rate.approver, of_rate.topic_id_before) == ("", "", None, None)
    assert (of_start.topic, of_start.digest, of_start.approver) == ("bills", "d1", "ann")
    assert of_start.request["after"] == {"assignment": {"0": [1, 2, 3]}}
    assert (of_start.principal, of_start.run, of_start.request["accepted_by"]) == ("User:m", "cli/step", "cli/accepted")
    rows = [of_cancel.request["before"], of_cancel.request["after"]]
    assert rows == [{"assignment": {"0": [1, 2, 3]}}, {"assignment": {"0": [1]}}]
    assert (of_end.requests, of_end.answer, of_end.outcome) == (0, "done", OutcomeStatus.DONE)

"""The exit status follows from outcomes and checks, and agrees with what was changed."""

import signal

import pytest

from topicops.model.errors import ExitStatus, status_after_signal
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, RunSummary, Verdict
from topicops.steps.reporting.run_result import apply_exit_status, verify_exit_status

DONE, ALREADY_SO, REFUSED = OutcomeStatus.DONE, OutcomeStatus.ALREADY_SO, OutcomeStatus.REFUSED
FAILED, UNKNOWN, NOT_SENT = OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN, OutcomeStatus.NOT_SENT
MOVING = OutcomeStatus.MOVING


def summary(
    *statuses: OutcomeStatus | tuple[OutcomeStatus, str],
    verdict: Verdict = Verdict.HEALTHY,
    held: int = 0,
    skipped: int = 0,
    blocked: int = 0,
    interrupted: bool = False,
) -> RunSummary:
    """``(FAILED, "sent")`` is a failure after a request left; done and unknown ones were sent anyway."""
    outcomes = []
    for status in statuses:
        word, sent = (status[0], True) if isinstance(status, tuple) else (status, status in (DONE, UNKNOWN))
        outcomes.append(Outcome(topic="t", action="create", digest="0", status=word, sent=sent))
    checks = (Check(id="V07", topic="t", verdict=verdict),)
    return RunSummary(
        outcomes=tuple(outcomes), checks=checks, held=held, skipped=skipped, blocked=blocked, interrupted=interrupted
    )


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        pytest.param(summary(), 0, id="nothing to do"),
        pytest.param(summary(DONE, ALREADY_SO), 0, id="all in place and verified"),
        pytest.param(summary(DONE, held=2, skipped=1, blocked=1), 0, id="held ones are counted, not failed"),
        pytest.param(summary(DONE, verdict=Verdict.PRE_EXISTING), 0, id="old trouble"),
        pytest.param(summary(DONE, MOVING), 0, id="moving is no failure"),
        pytest.param(summary(MOVING, verdict=Verdict.MOVING), 0, id="moving, and seen to move"),
        pytest.param(summary(MOVING, verdict=Verdict.DEGRADED), 7, id="moving, and stuck"),
        pytest.param(summary(MOVING, REFUSED), 6, id="refused beside moving"),
        pytest.param(summary(held=1), 3, id="all held"),
        pytest.param(summary(skipped=1), 3, id="all skipped"),
        pytest.param(summary(blocked=1), 3, id="all blocked"),
        pytest.param(summary(REFUSED), 4, id="the only one refused"),
        pytest.param(summary(REFUSED, REFUSED, held=1), 4, id="all refused"),
        pytest.param(summary(REFUSED, NOT_SENT), 4, id="refused, so the deletes were not sent"),
        pytest.param(summary(DONE, REFUSED), 6, id="refused beside applied"),
        pytest.param(summary(ALREADY_SO, REFUSED), 6, id="refused beside what an earlier run applied"),
        pytest.param(summary(DONE, FAILED), 6, id="failed beside applied"),
        pytest.param(summary(DONE, NOT_SENT), 6, id="broken off after the first"),
        pytest.param(summary(UNKNOWN), 6, id="sent, and none known to be applied"),
        pytest.param(summary((FAILED, "sent")), 6, id="sent, and failed"),
        pytest.param(summary(DONE, UNKNOWN, verdict=Verdict.FAILED), 6, id="in part goes before not verified"),
        pytest.param(summary(FAILED), 1, id="rejected by the dry run, nothing sent"),
        pytest.param(summary(FAILED, REFUSED), 1, id="rejected or refused, nothing sent"),
        pytest.param(summary(NOT_SENT), 1, id="broken off before the first"),
        pytest.param(summary(DONE, verdict=Verdict.CONVERGING), 7, id="not converged"),
        pytest.param(summary(DONE, verdict=Verdict.DEGRADED), 7, id="degraded"),
        pytest.param(summary(ALREADY_SO, verdict=Verdict.FAILED), 7, id="in place and broken"),
        pytest.param(summary(DONE, NOT_SENT, interrupted=True), 130, id="interrupted"),
    ],
)
def test_apply_exits_with(ended: RunSummary, status: int) -> None:
    assert apply_exit_status(ended) == status


def test_a_termination_is_told_from_an_interrupt() -> None:
    assert status_after_signal(signal.SIGTERM) == ExitStatus.TERMINATED == 143
    assert status_after_signal(signal.SIGINT) == ExitStatus.INTERRUPTED == 130


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        pytest.param(summary(), 0, id="healthy"),
        pytest.param(summary(verdict=Verdict.PRE_EXISTING), 0, id="old trouble"),
        pytest.param(summary(verdict=Verdict.MOVING), 0, id="moving"),
        pytest.param(summary(verdict=Verdict.CONVERGING), 7, id="converging"),
        pytest.param(summary(verdict=Verdict.DEGRADED), 7, id="degraded"),
        pytest.param(summary(verdict=Verdict.FAILED), 7, id="failed"),
        pytest.param(summary(interrupted=True), 130, id="interrupted"),
    ],
)
def test_verify_exits_with(ended: RunSummary, status: int) -> None:
    assert verify_exit_status(ended) == status

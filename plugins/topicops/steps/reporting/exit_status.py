"""The process's exit status, from how a run ended."""

from __future__ import annotations

import signal

from topicops.model.runs.results import IN_PLACE, OutcomeStatus, RunSummary

_NOT_IN_PLACE = (OutcomeStatus.REFUSED, OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN, OutcomeStatus.NOT_SENT)


def apply_exit_status(summary: RunSummary, *, signal_number: int = signal.SIGINT) -> int:
    """Give the exit status of ``apply``: 0, 1, 3, 4, 6 or 7, and 128 + ``signal_number`` when it was interrupted.

    A run that sent nothing never answers 6, so that the status and what was changed agree. 1 then means that it
    broke off, or that the brokers' dry run said no to all.
    """
    if summary.interrupted:
        return 128 + signal_number
    if not summary.outcomes and not summary.unhealthy:
        return 3 if summary.held or summary.dropped or summary.blocked else 0
    if summary.count(*_NOT_IN_PLACE):
        return _partial_status(summary)
    return 7 if summary.unhealthy else 0


def verify_exit_status(summary: RunSummary, *, signal_number: int = signal.SIGINT) -> int:
    """Give the exit status of ``verify`` alone: 7 when a check speaks against the cluster, else 0."""
    if summary.interrupted:
        return 128 + signal_number
    return 7 if summary.unhealthy else 0


def _partial_status(summary: RunSummary) -> int:
    if summary.count(*IN_PLACE) or any(outcome.sent for outcome in summary.outcomes):
        return 6
    if summary.count(OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN):
        return 1
    return 4 if summary.count(OutcomeStatus.REFUSED) else 1

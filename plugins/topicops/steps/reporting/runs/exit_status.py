"""The exit status of ``apply`` and ``verify``, from how a run ended."""

from __future__ import annotations

from topicops.model.exit_status import ExitStatus
from topicops.model.runs.results import IN_PLACE, OutcomeStatus, RunSummary

_NOT_IN_PLACE = (OutcomeStatus.REFUSED, OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN, OutcomeStatus.NOT_SENT)


def apply_exit_status(summary: RunSummary) -> ExitStatus:
    """Give the exit status of ``apply``.

    A run that sent nothing never ends with ``PARTLY_DONE``, so the status always agrees with what was changed.
    ``ERROR`` then means that the run stopped early, or that the brokers' dry run rejected every change.
    """
    if summary.interrupted:
        return ExitStatus.INTERRUPTED
    if not summary.outcomes and not summary.unhealthy:
        waits = summary.held or summary.skipped or summary.blocked
        return ExitStatus.NOTHING_MAY_RUN if waits else ExitStatus.SUCCESS
    if summary.count(*_NOT_IN_PLACE):
        return _partial_status(summary)
    return _health_status(summary)


def verify_exit_status(summary: RunSummary) -> ExitStatus:
    """Give the exit status of ``verify`` alone."""
    return ExitStatus.INTERRUPTED if summary.interrupted else _health_status(summary)


def _health_status(summary: RunSummary) -> ExitStatus:
    return ExitStatus.NOT_VERIFIED if summary.unhealthy else ExitStatus.SUCCESS


def _partial_status(summary: RunSummary) -> ExitStatus:
    if summary.count(*IN_PLACE) or any(outcome.sent for outcome in summary.outcomes):
        return ExitStatus.PARTLY_DONE
    if summary.count(OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN):
        return ExitStatus.ERROR
    return ExitStatus.NOTHING_SENT if summary.count(OutcomeStatus.REFUSED) else ExitStatus.ERROR

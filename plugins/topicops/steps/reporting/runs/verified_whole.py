"""Whether a run has put in place, and verified, all that the files of its environment ask for."""

from __future__ import annotations

from topicops.steps.reporting.runs.run_report import RunReport


def is_verified_whole(report: RunReport) -> bool:
    """A plan of all topics, of which every change is in place and none is blocked; an empty one counts too.

    Paused topics and differences that the policy only reports do not count: no change is planned for them.
    """
    plan = report.plan
    if plan is None or plan.change_set.source.only is not None or plan.change_set.blocked:
        return False
    done = {outcome.digest for outcome in report.outcomes}
    is_checked = bool(report.checks) or not report.outcomes
    return report.is_success and is_checked and all(gated.digest in done for gated in plan.changes)

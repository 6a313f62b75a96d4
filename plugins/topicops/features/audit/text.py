"""Lines of the audit log, and whether the log is whole, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from topicops.features.audit.values import AuditedLines, AuditedRun, AuditedRuns, CheckedLogs
from topicops.model.cluster.broker_defaults import Default
from topicops.model.printable import printable, printable_lines
from topicops.model.runs.audit import AuditLine
from topicops.steps.reporting.plan_wording import config_change_text, config_text

UNSEEN = (
    "If the log and its head file were both rewritten, the log looks whole: keep the end that is shown here elsewhere, "
    "and give it with --head later. A mutation whose line was never written leaves no trace."
)
"""What a chain of hashes cannot show."""


def checked_text(checked: CheckedLogs) -> str:
    if not checked.logs:
        return "Nothing was checked: this TOPICOPS_HOME has no audit log."
    lines: list[str] = []
    for log in checked.logs:
        lines.append(f"{log.environment}: {log.lines} lines, {'NOT ' if log.problems else ''}whole")
        lines += (f"  {problem}" for problem in log.problems or [f"ends at {log.end}"])
    return printable_lines("\n".join([*lines, UNSEEN]))


def runs_text(found: AuditedRuns) -> str:
    """Show one line a run: when it sent its first change, and how its changes ended."""
    return "\n".join(printable(_run_line(run)) for run in found.runs)


def _run_line(run: AuditedRun) -> str:
    approver = f", approved by {run.approver}" if run.approver else ""
    ended = ", ".join(f"{count} {outcome}" for outcome, count in run.outcomes.items())
    return (
        f"{run.at:%Y-%m-%dT%H:%M:%SZ} {run.run} {run.environment}: {ended}, by {run.principal}{approver}, "
        f"commit {run.commit or 'none'}"
    )


def lines_text(found: AuditedLines) -> str:
    return "\n".join(printable(part) for line in found.lines for part in _parts(line))


def _parts(line: AuditLine) -> list[str]:
    approver = f", approved by {line.approver}" if line.approver else ""
    started = f", started by {line.started_by}" if line.started_by else ""
    approver += f": {line.comment}" if line.comment else ""
    ids = f"topic id {line.topic_id_before or 'none'} -> {line.topic_id_after or 'none'}"
    answer = f"; {line.answer}" if line.answer != "accepted" else ""
    requests = f" after {line.requests} requests" if line.requests > 1 else ""
    return [
        f"{line.at:%Y-%m-%dT%H:%M:%SZ} {line.action} {line.topic}: {line.outcome}{requests}{answer}",
        *(f"  {text}" for text in _changed(line)),
        f"  {line.environment}, run {line.run}, by {line.principal}{started}{approver}",
        f"  plan {line.plan[:12]}, commit {line.commit or 'none'}, line {line.n}, {ids}",
    ]


def _changed(line: AuditLine) -> Iterator[str]:
    """``retention.ms: 2592000000 (30d) -> 1209600000 (14d)``: what was asked for, and of a delete why."""
    before, after = (_values(line.request.get(side)) for side in ("before", "after"))
    if line.action in ("create", "expand"):
        known = f"{before['partitions']} -> " if "partitions" in before else ""
        yield f"partitions: {known}{after.get('partitions', 'not known')}"
    old, new = _values(before.get("configs")), _values(after.get("configs"))
    for name in sorted(old.keys() | new.keys()):
        value_before, value_after = _text(old.get(name)), _text(new.get(name))
        if line.action == "create" and value_after:
            yield config_text(name, value_after)
        else:
            yield config_change_text(name, value_before, value_after, _default(line, name))
    if line.request.get("reason"):
        yield f"reason: {line.request['reason']}"


def _default(line: AuditLine, config: str) -> Default:
    """Read what the plan showed for the side without an override; empty in lines of older releases."""
    shown = _values(line.request.get("defaults")).get(config, ())
    try:
        return msgspec.convert(shown, Default)
    except msgspec.ValidationError:
        return ()


def _values(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return None if value is None else str(value)

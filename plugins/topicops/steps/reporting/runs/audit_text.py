"""Lines of the audit log, and whether the log is whole, as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypedDict

import msgspec

from topicops.model.cluster.broker_defaults import Default
from topicops.model.json_types import FormatVersion
from topicops.model.printable import printable, printable_lines
from topicops.model.runs.audit import AuditFile, AuditHead, AuditLine, chain_problems
from topicops.steps.audit_queries import is_whole
from topicops.steps.reporting.json_text import json_text
from topicops.steps.reporting.plans.config_wording import config_change_text, config_text

FORMAT_VERSION = "1.2"
"""1.1 added ``comment`` to the lines, 1.2 ``started_by``."""
UNSEEN = (
    "If the log and its head file were both rewritten, the log looks whole: keep the end that is shown here elsewhere, "
    "and give it with --head later. A mutation whose line was never written leaves no trace."
)
"""What a chain of hashes cannot show."""


class AuditLinesJson(TypedDict):
    format_version: FormatVersion
    lines: Sequence[AuditLine]


class AuditedRunJson(TypedDict):
    environment: str
    run: str
    at: datetime
    """When its first change was sent."""
    plan: str
    commit: str | None
    approver: str | None
    """Everybody who approved one of its changes, with commas."""
    principal: str
    outcomes: Mapping[str, int]


class AuditedRunsJson(TypedDict):
    format_version: FormatVersion
    runs: Sequence[AuditedRunJson]


class LogJson(TypedDict):
    environment: str
    path: str
    lines: int
    end: str
    problems: Sequence[str]


class VerificationJson(TypedDict):
    format_version: FormatVersion
    whole: bool
    logs: Sequence[LogJson]


def audit_lines_text(lines: Sequence[AuditLine]) -> str:
    return "\n".join(printable(part) for line in lines for part in _parts(line))


def audit_lines_json(lines: Sequence[AuditLine]) -> str:
    return json_text(AuditLinesJson(format_version=FORMAT_VERSION, lines=lines))


def verification_text(files: Sequence[AuditFile], noted: AuditHead | None) -> str:
    lines = [line for file in files for line in _verification_lines(file, noted)]
    if not lines:
        return "Nothing was checked: this TOPICOPS_HOME has no audit log."
    return printable_lines("\n".join([*lines, UNSEEN]))


def verification_json(files: Sequence[AuditFile], noted: AuditHead | None) -> str:
    logs: list[LogJson] = [
        {
            "environment": file.environment,
            "path": file.path,
            "lines": len(file.entries),
            "end": str(file.end),
            "problems": [*chain_problems(file, noted)],
        }
        for file in files
    ]
    return json_text(VerificationJson(format_version=FORMAT_VERSION, whole=is_whole(files, noted), logs=logs))


def _verification_lines(file: AuditFile, noted: AuditHead | None) -> Iterator[str]:
    problems = [*chain_problems(file, noted)]
    yield f"{file.environment}: {len(file.entries)} lines, {'NOT ' if problems else ''}whole"
    yield from (f"  {problem}" for problem in problems or [f"ends at {file.end}"])


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
    """What the plan showed for the side without an override; empty in lines of older releases."""
    shown = _values(line.request.get("defaults")).get(config, ())
    try:
        return msgspec.convert(shown, Default)
    except msgspec.ValidationError:
        return ()


def _values(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def audit_runs_text(runs: Sequence[Sequence[AuditLine]]) -> str:
    """One line a run: when it sent its first change, and how its changes ended."""
    return "\n".join(printable(_run_line(lines)) for lines in runs)


def audit_runs_json(runs: Sequence[Sequence[AuditLine]]) -> str:
    return json_text(AuditedRunsJson(format_version=FORMAT_VERSION, runs=[_run_json(lines) for lines in runs]))


def _run_line(lines: Sequence[AuditLine]) -> str:
    first, named = lines[0], _approvers(lines)
    approver = f", approved by {named}" if named else ""
    ended = ", ".join(
        f"{count} {outcome}" for outcome, count in sorted(Counter(line.outcome for line in lines).items())
    )
    return (
        f"{first.at:%Y-%m-%dT%H:%M:%SZ} {first.run} {first.environment}: {ended}, by {first.principal}{approver}, "
        f"commit {first.commit or 'none'}"
    )


def _run_json(lines: Sequence[AuditLine]) -> AuditedRunJson:
    first = lines[0]
    outcomes = Counter(str(line.outcome) for line in lines)
    return {
        "environment": first.environment,
        "run": first.run,
        "at": first.at,
        "plan": first.plan,
        "commit": first.commit,
        "approver": _approvers(lines),
        "principal": first.principal,
        "outcomes": dict(sorted(outcomes.items())),
    }


def _approvers(lines: Sequence[AuditLine]) -> str | None:
    return ", ".join(dict.fromkeys(line.approver for line in lines if line.approver)) or None

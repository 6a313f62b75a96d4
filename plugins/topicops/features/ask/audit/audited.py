"""What ``topicops audit`` prints, as values and as text: lines, runs, and whether the logs are whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from topicops.model.cluster.broker_defaults import Default
from topicops.model.json_types import FormatVersion
from topicops.model.printable import plural, printable, printable_lines
from topicops.model.runs.audit import AuditFile, AuditHead, AuditLine, chain_problems, in_order
from topicops.steps.reporting.plan_wording import config_change_text, config_text

UNSEEN = (
    "If the log and its head file were both rewritten, the log looks whole: keep the end that is shown here elsewhere, "
    "and give it with --head later. A mutation whose line was never written leaves no trace."
)
"""Sentence on what a chain of hashes cannot show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRun:
    """A run that sent changes to one environment."""

    environment: str
    run: str
    at: datetime
    plan: str
    commit: str | None
    approver: str | None
    """Everybody who approved one of its changes, with commas."""
    principal: str
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRuns:
    """Runs that were asked for, by their first change, oldest first."""

    format_version: FormatVersion = "1.0"
    runs: Sequence[AuditedRun]

    @classmethod
    def of(cls, files: Sequence[AuditFile], since: datetime | None) -> AuditedRuns:
        """Read the runs; those whose last change was sent before ``since`` are left out."""
        found: dict[tuple[str, str], list[AuditLine]] = {}
        for line in in_order(files):
            found.setdefault((line.environment, line.run), []).append(line)
        runs = [
            AuditedRun(
                environment=lines[0].environment,
                run=lines[0].run,
                at=lines[0].at,
                plan=lines[0].plan,
                commit=lines[0].commit,
                approver=", ".join(dict.fromkeys(line.approver for line in lines if line.approver)) or None,
                principal=lines[0].principal,
                outcomes=dict(sorted(Counter(str(line.outcome) for line in lines).items())),
            )
            for lines in found.values()
            if since is None or lines[-1].at >= since
        ]
        return cls(runs=runs)

    def text(self) -> str:
        """Show one line a run: when it sent its first change, and how its changes ended."""
        lines = []
        for run in self.runs:
            approver = f", approved by {run.approver}" if run.approver else ""
            ended = ", ".join(f"{count} {outcome}" for outcome, count in run.outcomes.items())
            by = f"by {run.principal}{approver}, commit {run.commit or 'none'}"
            lines.append(printable(f"{run.at:%Y-%m-%dT%H:%M:%SZ} {run.run} {run.environment}: {ended}, {by}"))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedLines:
    """Lines that were asked for, oldest first."""

    format_version: FormatVersion = "1.0"
    lines: Sequence[AuditLine]

    @classmethod
    def of(cls, files: Sequence[AuditFile], is_asked: Callable[[AuditLine], bool]) -> AuditedLines:
        return cls(lines=[line for line in in_order(files) if is_asked(line)])

    def text(self) -> str:
        return "\n".join(printable(part) for line in self.lines for part in _parts(line))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLog:
    """One environment's log."""

    environment: str
    path: str
    lines: int
    end: str
    problems: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLogs:
    """Whether the logs are whole."""

    format_version: FormatVersion = "1.0"
    whole: bool
    logs: Sequence[CheckedLog]

    @classmethod
    def of(cls, files: Sequence[AuditFile], noted: AuditHead | None) -> CheckedLogs:
        """Check the logs; ``noted`` is an end that was kept elsewhere."""
        logs = [
            CheckedLog(
                environment=file.environment,
                path=file.path,
                lines=len(file.entries),
                end=str(file.end),
                problems=[*chain_problems(file, noted)],
            )
            for file in files
        ]
        return cls(whole=not any(log.problems for log in logs), logs=logs)

    def text(self) -> str:
        if not self.logs:
            return "Nothing was checked: this TOPICOPS_HOME has no audit log."
        lines: list[str] = []
        for log in self.logs:
            lines.append(f"{log.environment}: {plural(log.lines, 'line')}, {'NOT ' if log.problems else ''}whole")
            lines += (f"  {problem}" for problem in log.problems or [f"ends at {log.end}"])
        return printable_lines("\n".join([*lines, UNSEEN]))


def _parts(line: AuditLine) -> list[str]:
    approver = f", approved by {line.approver}" if line.approver else ""
    approver += f": {line.comment}" if line.comment else ""
    started = f", started by {line.started_by}" if line.started_by else ""
    ids = f"topic id {line.topic_id_before or 'none'} -> {line.topic_id_after or 'none'}"
    answer = f"; {line.answer}" if line.answer != "accepted" else ""
    requests = f" after {line.requests} requests" if line.requests > 1 else ""
    return [
        f"{line.at:%Y-%m-%dT%H:%M:%SZ} {line.action} {_subject(line)}: {line.outcome}{requests}{answer}",
        *(f"  {text}" for text in _changed(line)),
        f"  {line.environment}, run {line.run}, by {line.principal}{started}{approver}",
        f"  plan {line.plan[:12] or 'none'}, commit {line.commit or 'none'}, line {line.n}, {ids}",
    ]


def _subject(line: AuditLine) -> str:
    """Return the topic; of a broker's throttle rates the broker."""
    return line.topic or f"broker {line.request.get('broker')}"


def _changed(line: AuditLine) -> Iterator[str]:
    """Yield ``retention.ms: 2592000000 (30d) -> 1209600000 (14d)``: what was asked for, and of a delete why."""
    before, after = (_values(line.request.get(side)) for side in ("before", "after"))
    if line.action in ("create", "expand"):
        known = f"{before['partitions']} -> " if "partitions" in before else ""
        yield f"partitions: {known}{after.get('partitions', 'not known')}"
    old, new = _values(before.get("configs")), _values(after.get("configs"))
    for name in sorted(old.keys() | new.keys()):
        value_before, value_after = (None if side.get(name) is None else str(side[name]) for side in (old, new))
        if line.action == "create" and value_after:
            yield config_text(name, value_after)
        else:
            yield config_change_text(name, value_before, value_after, _default(line, name))
    if line.request.get("reason"):
        yield f"reason: {line.request['reason']}"
    if line.action == "reassign":
        yield from _moved(line, before, after)


def _moved(line: AuditLine, before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    """Yield what a step of moves sent: rows by partition, entries of throttle lists, rates."""
    what, run = line.request.get("what"), line.request.get("accepted_by")
    yield f"{what} of a move that {run} accepted" if run else f"{what} for all moves of the broker"
    old, new = _values(before.get("assignment")), _values(after.get("assignment"))
    yield from (f"partition {p}: {old.get(p, 'not known')} -> {row}" for p, row in new.items())
    others = [name for name in (*before, *after) if name != "assignment"]
    for name in dict.fromkeys(others):
        yield f"{name}: {before.get(name) or 'none'} -> {after.get(name) or 'none'}"


def _default(line: AuditLine, config: str) -> Default:
    """Read what the plan showed for the side without an override; empty in lines of older releases."""
    shown = _values(line.request.get("defaults")).get(config, ())
    try:
        return msgspec.convert(shown, Default)
    except msgspec.ValidationError:
        return ()


def _values(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}

"""Lines of the audit log, and whether the log is whole, as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from topicops.model.printable import printable, printable_lines
from topicops.model.runs.audit import AuditFile, AuditHead, AuditLine, chain_problems
from topicops.steps.audit_queries import is_whole

FORMAT_VERSION = "1.0"
UNSEEN = (
    "If the log and its head file were both rewritten, the log looks whole: keep the end that is shown here elsewhere, "
    "and give it with --head later. A mutation whose line was never written leaves no trace."
)
"""What a chain of hashes cannot show."""


def audit_lines_text(lines: Sequence[AuditLine]) -> str:
    return "\n".join(printable(part) for line in lines for part in _parts(line))


def audit_lines_json(lines: Sequence[AuditLine]) -> str:
    return _json({"format_version": FORMAT_VERSION, "lines": [_line_json(line) for line in lines]})


def verification_text(files: Sequence[AuditFile], noted: AuditHead | None) -> str:
    lines = [line for file in files for line in _verification_lines(file, noted)]
    return printable_lines("\n".join([*lines, UNSEEN]))


def verification_json(files: Sequence[AuditFile], noted: AuditHead | None) -> str:
    logs = [
        {
            "environment": file.environment,
            "path": file.path,
            "lines": len(file.entries),
            "end": str(file.end),
            "problems": [*chain_problems(file, noted)],
        }
        for file in files
    ]
    return _json({"format_version": FORMAT_VERSION, "whole": is_whole(files, noted), "logs": logs})


def _verification_lines(file: AuditFile, noted: AuditHead | None) -> Iterator[str]:
    problems = [*chain_problems(file, noted)]
    yield f"{file.environment}: {len(file.entries)} lines, {'NOT ' if problems else ''}whole"
    yield from (f"  {problem}" for problem in problems or [f"ends at {file.end}"])


def _parts(line: AuditLine) -> list[str]:
    approver = f", approved by {line.approver}" if line.approver else ""
    ids = f"topic id {line.topic_id_before or 'none'} -> {line.topic_id_after or 'none'}"
    answer = f"; {line.answer}" if line.answer != "accepted" else ""
    requests = f" after {line.requests} requests" if line.requests > 1 else ""
    return [
        f"{line.at:%Y-%m-%dT%H:%M:%SZ} {line.action} {line.topic}: {line.outcome}{requests}{answer}",
        f"  {line.environment}, run {line.run}, by {line.principal}{approver}",
        f"  plan {line.plan[:12]}, commit {line.commit or 'none'}, line {line.n}, {ids}",
    ]


def _line_json(line: AuditLine) -> dict[str, object]:
    return {**asdict(line), "at": line.at.isoformat().replace("+00:00", "Z"), "outcome": str(line.outcome)}


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)

"""What the audit log says of a topic or a run, and whether it is whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from topicops.model.printable import printable
from topicops.model.runs.audit import AuditFile, AuditHead, AuditLine, chain_problems

FORMAT_VERSION = "1.0"
UNSEEN = (
    "A log and a head file that were both rewritten look whole: keep the end that is shown here elsewhere, and give it "
    "with --head later. Nothing tells of a mutation whose line was never written."
)
"""What a chain of hashes cannot see."""


def of_topic(files: Sequence[AuditFile], topic: str) -> list[AuditLine]:
    """Every mutation of a name, oldest first; topics that were made anew under it are told apart by their ids."""
    return _sorted(line for file in files for line in file.lines if line.topic == topic)


def of_run(files: Sequence[AuditFile], run: str) -> list[AuditLine]:
    """Every mutation of a run: ``<group>/<run id>``, or the run id alone."""
    return _sorted(line for file in files for line in file.lines if run in (line.run, line.run.partition("/")[2]))


def lines_text(lines: Sequence[AuditLine]) -> str:
    return "\n".join(printable(part) for line in lines for part in _parts(line))


def lines_json(lines: Sequence[AuditLine]) -> str:
    return _json({"format_version": FORMAT_VERSION, "lines": [_line_json(line) for line in lines]})


def is_whole(files: Sequence[AuditFile], noted: AuditHead | None) -> bool:
    return not any(problem for file in files for problem in chain_problems(file, noted))


def verification_text(files: Sequence[AuditFile], noted: AuditHead | None) -> str:
    lines: list[str] = []
    for file in files:
        problems = [*chain_problems(file, noted)]
        lines.append(f"{file.environment}: {len(file.entries)} lines, {'NOT ' if problems else ''}whole")
        lines += [f"  {problem}" for problem in problems] or [f"  ends at {file.end}"]
    return "\n".join(printable(line) for line in [*lines, UNSEEN])


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


def _sorted(lines: Iterable[AuditLine]) -> list[AuditLine]:
    return sorted(lines, key=lambda line: (line.at, line.environment, line.n))


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

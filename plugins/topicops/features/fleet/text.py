"""What was found in each of many environments: a table for people, and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from topicops.features.fleet.values import FORMAT_VERSION, EnvironmentResult, FleetReport, Standing
from topicops.model.json_types import FormatVersion, json_text
from topicops.model.printable import markdown, printable


class EnvironmentJson(TypedDict):
    environment: str
    result: Standing
    summary: str
    code: str | None
    exit_status: int
    counts: Mapping[str, int]
    path: str | None
    fingerprint: str | None


class FleetJson(TypedDict):
    format_version: FormatVersion
    summary: str
    counts: Mapping[Standing, int]
    exit_status: int
    environments: Sequence[EnvironmentJson]


def fleet_text(report: FleetReport) -> str:
    """A line for each environment; the summary last."""
    width = max(len("environment"), *(len(result.environment) for result in report.environments))
    lines = [f"{'environment':<{width}}  result"]
    lines += [printable(f"{r.environment:<{width}}  {_result(r)}") for r in report.environments]
    return "\n".join([*lines, "", fleet_summary(report)])


def fleet_markdown(report: FleetReport) -> str:
    lines = ["| environment | result |", "| --- | --- |"]
    lines += [f"| {markdown(r.environment)} | {markdown(_result(r))} |" for r in report.environments]
    return "\n".join([*lines, "", markdown(fleet_summary(report))])


def fleet_summary(report: FleetReport) -> str:
    """``38 of 50 environments without changes, 2 held, 1 unreachable.``"""
    first, *rest = (f"{number} {standing}" for standing, number in report.counts.items())
    number, _, standing = first.partition(" ")
    return f"{', '.join([f'{number} of {len(report.environments)} environments {standing}', *rest])}."


def fleet_json(report: FleetReport) -> str:
    return json_text(fleet_values(report))


def fleet_values(report: FleetReport) -> FleetJson:
    """The values of ``fleet.json``."""
    return {
        "format_version": FORMAT_VERSION,
        "summary": fleet_summary(report),
        "counts": report.counts,
        "exit_status": int(report.exit_status),
        "environments": [_values(result) for result in report.environments],
    }


def _result(result: EnvironmentResult) -> str:
    code = f"{result.code}: " if result.code else ""
    return f"{code}{result.summary.splitlines()[0] if result.summary else result.result.value}"


def _values(result: EnvironmentResult) -> EnvironmentJson:
    return {
        "environment": result.environment,
        "result": result.result,
        "summary": result.summary,
        "code": result.code,
        "exit_status": int(result.exit_status),
        "counts": dict(result.counts),
        "path": result.path,
        "fingerprint": result.fingerprint,
    }

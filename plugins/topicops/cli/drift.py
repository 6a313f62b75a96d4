"""``topicops drift``: where the cluster is not as the files say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from topicops.cli.output import tell
from topicops.cli.plan import CHANGES_PENDING, EnvironmentOption, TopicsOption
from topicops.cli.runs import unrecorded_run
from topicops.model.printable import printable

if TYPE_CHECKING:
    from topicops.steps.drift import DriftEntry

FORMAT_VERSION = "1.0"


def drift_command(
    environment: EnvironmentOption,
    topics: TopicsOption = Path("topics"),
    only: Annotated[
        str | None, typer.Option("--only", help="Compare only topics whose name matches this glob.")
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit 2 when there is a difference.")
    ] = False,
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Show where the live cluster differs from the files; nothing is written."""
    from topicops import flow

    entries = flow.drift(unrecorded_run(environment, topics), only=only)
    tell(as_json(entries) if output == "json" else as_text(entries))
    if detailed_exitcode and entries:
        raise typer.Exit(CHANGES_PENDING)


def as_text(entries: tuple[DriftEntry, ...]) -> str:
    """A line for each difference, and last how many topics there are of each kind."""
    from topicops.steps.drift import counted

    numbers = [f"{number} {kind}" for kind, number in counted(entries).items() if number]
    summary = f"Drift, in topics: {', '.join(numbers)}." if entries else "No drift: the cluster is as the files say."
    return "\n".join([*map(_line, entries), *([""] if entries else []), summary])


def _line(entry: DriftEntry) -> str:
    place = f" ({printable(str(entry.location))})" if entry.location else ""
    return f"{printable(entry.topic)}: {_difference(entry)}{place}"


def _difference(entry: DriftEntry) -> str:
    from topicops.steps.drift import DriftKind

    match entry.kind:
        case DriftKind.CHANGED:
            return f"{_name(entry)}: {_shown(entry.wanted)} in the files, {_shown(entry.live)} live"
        case DriftKind.UNLISTED:
            return f"{_name(entry)}: {_shown(entry.live)} live, and no file names it"
        case DriftKind.MISSING:
            return "not live, and described"
        case DriftKind.RETIRED:
            return "live, and its tombstone says absent"
        case DriftKind.UNMANAGED:
            return "live, and no file describes it"


def _name(entry: DriftEntry) -> str:
    return printable(entry.field.removeprefix("configs."))


def _shown(value: str | None) -> str:
    return "not set" if value is None else printable(value)


def as_json(entries: tuple[DriftEntry, ...]) -> str:
    """One JSON object, ASCII only."""
    return json.dumps({"format_version": FORMAT_VERSION, "drift": [_as_json(entry) for entry in entries]}, indent=2)


def _as_json(entry: DriftEntry) -> dict[str, object]:
    return {
        "topic": entry.topic,
        "kind": entry.kind.value,
        "field": entry.field or None,
        "wanted": entry.wanted,
        "live": entry.live,
        "file": entry.location.file if entry.location else None,
        "line": entry.location.line if entry.location else None,
    }

"""``topicops import``: specs for the topics that live, so that a plan changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from topicops.cli.cluster.plan import EnvironmentOption, TopicsOption
from topicops.cli.output import print_result
from topicops.cli.runs import unrecorded_run
from topicops.model.printable import printable

if TYPE_CHECKING:
    from topicops.steps.authoring.import_topics import ImportResult

FORMAT_VERSION = "1.0"


def import_command(
    environment: EnvironmentOption,
    owner: Annotated[str, typer.Option("--owner", help="Who answers for the imported topics.")],
    topics: TopicsOption = Path("topics"),
    only: Annotated[str | None, typer.Option("--only", help="Import only topics whose name matches this glob.")] = None,
    domain: Annotated[
        str | None,
        typer.Option("--domain", help="The folder for all of them; left out: the first dotted part of each name."),
    ] = None,
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Write a spec for each live topic that has none, so that the next plan changes nothing."""
    from topicops import flow
    from topicops.steps.authoring.import_topics import ImportOptions
    from topicops.steps.authoring.owners_and_domains import checked_domain, checked_owner

    wishes = ImportOptions(
        owner=checked_owner(owner), domain=None if domain is None else checked_domain(domain), only=only
    )
    adoption = flow.import_topics(unrecorded_run(environment, topics), wishes)
    print_result(as_json(adoption) if output == "json" else "\n".join(as_lines(adoption)))


def as_lines(adoption: ImportResult) -> Iterator[str]:
    """Counts first; then everything that is not as one might expect, each with its reason."""
    files = [printable(path) for path in adoption.files if path not in adoption.profiles]
    yield from _section("Imported", "topic", files)
    yield from _section("New profiles", "profile", [printable(path) for path in adoption.profiles])
    yield from _section(
        "Exceptions written",
        "exception",
        [f"{printable(e.topic)}: {e.code}: {printable(e.reason)}" for e in adoption.exceptions],
    )
    yield from _section(
        "Left out",
        "topic",
        [f"{printable(left.topic)}: {_coded(left.code, left.reason)}" for left in adoption.left_out],
    )
    yield from _section(
        "Overrides that no spec may name",
        "override",
        [f"{printable(o.topic)}: {_coded(o.code, o.reason)}" for o in adoption.unsayable],
    )
    yield from _section("Protected, skipped", "topic", [printable(name) for name in adoption.protected])
    yield (
        f"{_count(len(adoption.topics), 'topic')} imported, {_count(len(adoption.profiles), 'new profile')}, "
        f"{_count(len(adoption.exceptions), 'exception')}, {len(adoption.left_out)} left out, "
        f"{len(adoption.protected)} protected, {len(adoption.described)} described before."
    )


def _section(title: str, what: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"{title} ({_count(len(lines), what)}):"
        yield from (f"  {line}" for line in lines)
        yield ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _coded(code: str, reason: str) -> str:
    return f"{code}: {printable(reason)}" if code else printable(reason)


def as_json(adoption: ImportResult) -> str:
    """One JSON object, ASCII only."""
    return json.dumps(
        {
            "format_version": FORMAT_VERSION,
            "imported": list(adoption.topics),
            "files": list(adoption.files),
            "exceptions": [exception.fields for exception in adoption.exceptions],
            "left_out": [{"topic": e.topic, "code": e.code or None, "reason": e.reason} for e in adoption.left_out],
            "unsayable": [
                {"topic": o.topic, "config": o.config, "code": o.code, "reason": o.reason} for o in adoption.unsayable
            ],
            "protected": list(adoption.protected),
            "described": list(adoption.described),
        },
        indent=2,
    )

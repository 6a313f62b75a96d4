"""``topicops new``: a valid spec for a new topic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_error, print_result
from topicops.cli.shared_options import TopicsOption
from topicops.model.errors import SpecError, UsageError
from topicops.model.printable import printable


def new_command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    owner: Annotated[str, typer.Option("--owner", help="The team or person responsible for it.")],
    topics: TopicsOption = Path("topics"),
    domain: Annotated[
        str | None, typer.Option("--domain", help="The folder. Default: the first dotted part of the name.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", help="What its records are.")] = None,
    label: Annotated[list[str] | None, typer.Option("--label", help="KEY=VALUE; may be repeated.")] = None,
    only_in: Annotated[
        list[str] | None, typer.Option("--only-in", help="An environment; may be repeated. Default: all.")
    ] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Name of a file in topics/profiles/.")] = None,
    partitions: Annotated[int | None, typer.Option("--partitions", help="Default: as in the layers below.")] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", help="Default: as in the layers below.")
    ] = None,
    keyed: Annotated[
        bool | None, typer.Option("--keyed/--not-keyed", help="Whether new partitions would move keys. Default: yes.")
    ] = None,
    config: Annotated[list[str] | None, typer.Option("--config", help="NAME=VALUE; may be repeated.")] = None,
) -> None:
    """Check a new spec against all rules, then write it. No file is overwritten. Opens no connection."""
    from topicops.flow.spec_files import write_new_spec
    from topicops.plugged import NEW_FILE
    from topicops.steps.authoring.new_spec import NewTopic
    from topicops.steps.authoring.owners_and_domains import checked_domain, checked_owner

    new = NewTopic(
        name=topic,
        owner=checked_owner(owner),
        description=description,
        labels=_pairs(label, option="--label"),
        environments=tuple(only_in or ()),
        profile=profile,
        partitions=partitions,
        replication_factor=replication_factor,
        keyed=keyed,
        configs=_pairs(config, option="--config"),
    )
    try:
        folder = None if domain is None else checked_domain(domain)
        file = write_new_spec(topics, new, domain=folder, passes=NEW_FILE)
    except SpecError:
        print_error("No file was written; a place below in a file that is not there is of the text it would have had:")
        raise
    print_result(f"Wrote {printable(file)}")


def _pairs(given: Sequence[str] | None, *, option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not equals or not name or name in found:
            raise UsageError(f"{option} {pair!r}: write it as NAME=VALUE, each name once")
        found[name] = value
    return found

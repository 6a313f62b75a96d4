"""``topicops new``: a valid spec for a topic that is to be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.cluster.plan import TopicsOption
from topicops.cli.output import print_result
from topicops.model.errors import UsageError
from topicops.model.printable import printable


def new_command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    owner: Annotated[str, typer.Option("--owner", help="Who answers for it.")],
    topics: TopicsOption = Path("topics"),
    domain: Annotated[
        str | None, typer.Option("--domain", help="The folder; left out: the first dotted part of the name.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", help="What its records are.")] = None,
    label: Annotated[list[str] | None, typer.Option("--label", help="KEY=VALUE; may be given again.")] = None,
    only_in: Annotated[
        list[str] | None, typer.Option("--only-in", help="An environment; may be given again. Left out: all.")
    ] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Name of a file in topics/profiles/.")] = None,
    partitions: Annotated[int | None, typer.Option("--partitions", help="Left out: as the layers below say.")] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", help="Left out: as the layers below say.")
    ] = None,
    keyed: Annotated[
        bool | None, typer.Option("--keyed/--not-keyed", help="Whether growing it moves keys. Left out: it does.")
    ] = None,
    config: Annotated[list[str] | None, typer.Option("--config", help="NAME=VALUE; may be given again.")] = None,
) -> None:
    """Write a spec, held to all rules first; no file is written over. Opens no connection."""
    from topicops.edges.specs.reader import read_tree
    from topicops.edges.specs.writer import document_of, node_of, shown, write_new
    from topicops.steps.authoring.formatting import formatted
    from topicops.steps.authoring.new_spec import NewTopic, require_sound
    from topicops.steps.authoring.owners_and_domains import checked_domain, checked_owner, domain_of

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
    text = formatted(new.text, "Topic", node_of)
    tree = read_tree(topics)
    stem = _checked_stem(topic)
    folder = domain_of(topic) if domain is None else checked_domain(domain)
    below = f"{folder}/{stem}.yaml"
    require_sound(tree, document_of(topics, below, text), datetime.now(UTC))
    write_new(topics, {below: text})
    print_result(f"Wrote {printable(shown(topics / below))}")


def _checked_stem(topic: str) -> str:
    """The name, if a file can have it; the rules say what else is wrong with it."""
    from topicops.steps.specs.rules.names import name_problem

    trouble = name_problem(topic)
    if trouble:
        raise UsageError(f"{trouble[0]}: {trouble[1]}")
    return topic


def _pairs(given: Sequence[str] | None, *, option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not equals or not name or name in found:
            raise UsageError(f"{option} {pair!r}: write it as NAME=VALUE, each name once")
        found[name] = value
    return found

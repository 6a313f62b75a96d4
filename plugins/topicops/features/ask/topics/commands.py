"""``topicops list``: list live topics, with the filters of ``kafka-topics``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_error, print_value
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, unrecorded_run


def list_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A topic, or a glob of names. Default: all.")
    ] = None,
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    under_replicated: Annotated[
        bool,
        typer.Option(
            "--under-replicated",
            help="Partitions with fewer replicas in sync than assigned; one that is being added does not count yet.",
        ),
    ] = False,
    under_min_isr: Annotated[
        bool,
        typer.Option(
            "--under-min-isr",
            help="Partitions without a live leader, or with fewer replicas in sync than min.insync.replicas.",
        ),
    ] = False,
    at_min_isr: Annotated[
        bool, typer.Option("--at-min-isr", help="Partitions with exactly min.insync.replicas replicas in sync.")
    ] = False,
    unavailable: Annotated[bool, typer.Option("--unavailable", help="Partitions without a live leader.")] = False,
    with_overrides: Annotated[bool, typer.Option("--with-overrides", help="Topics with configs of their own.")] = False,
    unmanaged: Annotated[bool, typer.Option("--unmanaged", help="Topics that no file describes.")] = False,
    describe: Annotated[
        bool, typer.Option("--describe", help="Topics in the lines of kafka-topics, as partitions are.")
    ] = False,
    output: TextOrJsonOption = "text",
) -> None:
    """List live topics with owner, file and state, or the partitions that match Kafka's own filters. Reads only."""
    from topicops.features.ask.topics import listing

    asked = {
        "under-replicated": under_replicated,
        "under-min-isr": under_min_isr,
        "at-min-isr": at_min_isr,
        "unavailable": unavailable,
        "with-overrides": with_overrides,
        "unmanaged": unmanaged,
    }
    wanted = [option for option, is_asked in asked.items() if is_asked]
    found = listing.read_topics(unrecorded_run(environment, topics), wanted, name)
    is_kafkas = describe or listing.FILTERS.keys() & set(wanted)
    if output == "json" or found.topics:
        print_value(found, output, listing.topics_text if is_kafkas else listing.topics_table)
    if output == "json":
        return
    print_error(listing.topics_summary(found))
    for line in listing.topics_ways(found):
        print_error(f"why: {line}")
    if found.knows_broker_defaults is False:
        print_error(
            "not every broker reported min.insync.replicas: for topics without their own the others' is used, else 1"
        )

"""``topicops topics``: list live topics, with the filters of ``kafka-topics``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_error, print_result
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, unrecorded_run


def topics_command(
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
    output: TextOrJsonOption = "text",
) -> None:
    """List live topics, or the partitions that match Kafka's own filters. Nothing is written."""
    from topicops.features.ask.topics.listing import read_topics, topics_summary, topics_text, topics_ways
    from topicops.model.json_types import json_text

    asked = {
        "under-replicated": under_replicated,
        "under-min-isr": under_min_isr,
        "at-min-isr": at_min_isr,
        "unavailable": unavailable,
        "with-overrides": with_overrides,
        "unmanaged": unmanaged,
    }
    wanted = [option for option, is_asked in asked.items() if is_asked]
    listing = read_topics(unrecorded_run(environment, topics), wanted)
    if output == "json":
        print_result(json_text(listing))
        return
    if listing.topics:
        print_result(topics_text(listing))
    print_error(topics_summary(listing))
    for line in topics_ways(listing):
        print_error(f"why: {line}")
    if listing.knows_broker_defaults is False:
        print_error(
            "not every broker reported min.insync.replicas: for topics without their own the others' is used, else 1"
        )

"""``topicops topics``: live topics, through the filters of Kafka's own tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from topicops.cli.cluster.plan import EnvironmentOption, TopicsOption
from topicops.cli.output import print_error, print_result
from topicops.cli.runs import unrecorded_run


def topics_command(
    environment: EnvironmentOption,
    topics: TopicsOption = Path("topics"),
    under_replicated: Annotated[bool, typer.Option("--under-replicated", help="Replicas are missing.")] = False,
    under_min_isr: Annotated[bool, typer.Option("--under-min-isr", help="acks=all fails there.")] = False,
    at_min_isr: Annotated[bool, typer.Option("--at-min-isr", help="One more loss, and acks=all fails.")] = False,
    unavailable: Annotated[bool, typer.Option("--unavailable", help="No live leader.")] = False,
    with_overrides: Annotated[bool, typer.Option("--with-overrides", help="Topics with configs of their own.")] = False,
    unmanaged: Annotated[bool, typer.Option("--unmanaged", help="Topics that no file names.")] = False,
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """List live topics, or the partitions that a filter of Kafka's own names; nothing is written."""
    from topicops import flow
    from topicops.steps.topic_listing import PartitionFilter, Wanted, listing_json, listing_text, summary

    asked = {
        PartitionFilter.UNDER_REPLICATED: under_replicated,
        PartitionFilter.UNDER_MIN_ISR: under_min_isr,
        PartitionFilter.AT_MIN_ISR: at_min_isr,
        PartitionFilter.UNAVAILABLE: unavailable,
    }
    partitions = frozenset(name for name, is_asked in asked.items() if is_asked)
    wanted = Wanted(partitions=partitions, with_overrides=with_overrides, unmanaged=unmanaged)
    listing = flow.topics(unrecorded_run(environment, topics), wanted)
    if output == "json":
        print_result(listing_json(listing))
        return
    if listing.topics:
        print_result(listing_text(listing))
    print_error(summary(listing))
    if listing.knows_broker_defaults is False:
        print_error("no broker told its min.insync.replicas: 1, Kafka's default, was taken where a topic has none")

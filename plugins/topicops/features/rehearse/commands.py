"""``topicops rehearse``: what a plan, and the loss of brokers, would make of the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_value
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, unrecorded_run
from topicops.model.errors import UsageError


def rehearse_command(
    plan: Annotated[Path | None, typer.Argument(metavar="[PLAN]", help="A file written by `plan --out`.")] = None,
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    without_broker: Annotated[
        list[int] | None, typer.Option("--without-broker", help="Lose this broker. May be repeated.")
    ] = None,
    without_rack: Annotated[
        list[str] | None, typer.Option("--without-rack", help="Lose all brokers of this rack. May be repeated.")
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(
            "--step",
            help="Lose them after so many changes of the plan. Default: after all; 0: before the first.",
            min=0,
        ),
    ] = None,
    without_each_rack: Annotated[
        bool,
        typer.Option(
            "--without-each-rack",
            help="Lose each rack in turn, on the whole cluster; with PLAN, after all its changes.",
        ),
    ] = False,
    without_each_broker: Annotated[
        bool,
        typer.Option(
            "--without-each-broker",
            help="Lose each broker in turn before the moves of PLAN, in the middle of them, and after them.",
        ),
    ] = False,
    output: TextOrJsonOption = "text",
) -> None:
    """Play a plan on the live topics, with brokers that go missing; nothing is sent."""
    from topicops.features.rehearse import text as texts
    from topicops.features.rehearse.rehearsing import lose_each_broker, lose_each_rack, rehearse_plan
    from topicops.flow.runs.run import load_plan

    lost = bool(without_broker or without_rack)
    if without_each_rack and (lost or step is not None):
        raise UsageError("--without-each-rack takes no other loss, and no --step")
    if without_each_broker and (plan is None or lost or without_each_rack or step is not None):
        raise UsageError("--without-each-broker needs PLAN, and takes no other loss, and no --step")
    if not lost and step is not None:
        raise UsageError("--step says when brokers are lost; name them with --without-broker or --without-rack")
    if plan is None and not lost and not without_each_rack:
        raise UsageError("nothing to rehearse; name a plan, or what is lost with --without-broker or --without-rack")
    saved = load_plan(plan) if plan else None
    named = environment or (saved.target.environment if saved else None)
    run = unrecorded_run(named, topics)
    if without_each_broker and saved is not None:
        print_value(lose_each_broker(run, saved), output, texts.moves_text)
        return
    if without_each_rack:
        print_value(lose_each_rack(run, saved), output, texts.racks_text)
        return
    found = rehearse_plan(run, saved, brokers=without_broker or (), racks=without_rack or (), step=step)
    print_value(found, output, texts.rehearsal_text)

"""``topicops moves``: what moves, how far it is, and how it is cancelled, throttled and carried on."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicops.cli.output import print_error, print_value, progress
from topicops.cli.shared_options import (
    EnvironmentOption,
    TextOrJsonOption,
    TopicsOption,
    one_environment,
    run_of,
    seconds_of,
)
from topicops.cli.terminal import is_terminal
from topicops.model.errors import ExitStatus, TopicopsError, UsageError

if TYPE_CHECKING:
    from topicops.features.moves.carrying.values import Stepped
    from topicops.features.moves.telling.status import MovesStatus
    from topicops.flow.runs.run import EnvironmentRun


def moves_command(
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    step: Annotated[
        bool, typer.Option("--step", help="Carry the moves on by one step of a few seconds, then show them.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Carry them on, step by step, and show them until nothing moves any more.")
    ] = False,
    every: Annotated[str, typer.Option("--every", help="With --watch: how long to wait between two steps.")] = "10s",
    cancel: Annotated[
        list[str] | None,
        typer.Option("--cancel", metavar="TOPIC", help="Move this topic's replicas back, where that is safe."),
    ] = None,
    cancel_all: Annotated[
        bool, typer.Option("--cancel-all", help="Do as --cancel with all topics that topicops moves here.")
    ] = False,
    throttle: Annotated[
        str | None,
        typer.Option("--throttle", metavar="SIZE", help="Copy at most so much a second and broker from now on: 50MiB."),
    ] = None,
    forget_broker: Annotated[
        int | None,
        typer.Option(
            "--forget-broker",
            metavar="ID",
            help="No longer wait for a broker that never comes back, to remove our rate.",
        ),
    ] = None,
    lock_timeout: Annotated[
        str, typer.Option("--lock-timeout", help="How long to wait for the lease: 30s, 5m, 1h or seconds.")
    ] = "0s",
    output: TextOrJsonOption = "text",
) -> None:
    """Show the replicas that move, ours and those of others; other options carry ours on, cancel or throttle them."""
    from topicops.features.moves.telling import following
    from topicops.features.moves.telling.text import bar, status_text

    if cancel and cancel_all:
        raise UsageError("--cancel-all cancels all: leave --cancel out")
    wait_s, every_s = seconds_of(lock_timeout), seconds_of(every)
    slower = following.throttled(following.bytes_of(throttle)) if throttle is not None else None
    run = run_of(one_environment(environment, topics), topics)
    if slower:
        following.change_record(run, slower, lock_timeout_s=wait_s)
    if cancel or cancel_all:
        chosen = following.cancelling(None if cancel_all else cancel, run)
        following.change_record(run, chosen, lock_timeout_s=wait_s)
        print_error("What the files ask for is planned again: change them too, unless the move shall start anew.")
    if forget_broker is not None:
        following.change_record(run, following.forgetting(forget_broker, run), lock_timeout_s=wait_s)
        print_error(
            f"If broker {forget_broker} comes back after all, `topicops doctor` names the rate that it still has."
        )
    ended = []
    if watch:
        try:
            ended = following.watch(
                lambda: stepped(run, wait_s),
                lambda: shown(run, with_others=False),
                lambda found: progress(bar(found) if is_terminal(sys.stderr) else f"{run.environment}: {found.text}"),
                print_error,
                every_s=every_s,
                clock=run.clock,
            )
        except KeyboardInterrupt:
            print_error("What moves goes on by itself; what waits, and the throttles, wait for a later step.")
            raise
    elif step or cancel or cancel_all or slower:
        stepped(run, wait_s)
    print_value(shown(run, with_others=True), output, status_text)
    if following.dropped(ended):
        raise typer.Exit(ExitStatus.PARTLY_DONE)


def stepped(run: EnvironmentRun, lock_timeout_s: float) -> Stepped | None:
    from topicops.features.moves.stepping import take_step

    return take_step(run, lock_timeout_s=lock_timeout_s)


def shown(run: EnvironmentRun, *, with_others: bool) -> MovesStatus:
    """Read the record, and with others the cluster. A cluster that cannot be read is a sentence of the status."""
    from topicops.features.moves.record import read_moves
    from topicops.features.moves.telling.status import moves_of_others, status_of
    from topicops.flow.runs.access import read_live_topics
    from topicops.flow.runs.files import read_needed_specs
    from topicops.steps.specs.needed import no_topic

    record = read_moves(run.home, run.environment)
    found = status_of(run.environment, record)
    if not with_others:
        return found
    specs, _ = read_needed_specs(run.files, no_topic, run.progress).require()
    try:
        return replace(found, others=tuple(moves_of_others(record, read_live_topics(run.access(specs)))))
    except TopicopsError as error:
        return replace(found, others_unread=str(error))

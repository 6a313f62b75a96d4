"""``topicops rebalance``, ``drain`` and ``leaders``: plans of moves that no file asks for, and elections."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicops.cli.output import asked, next_line, plan_of_today, print_error, print_result, print_value
from topicops.cli.shared_options import (
    EnvironmentOption,
    Format,
    FormatOption,
    TextOrJsonOption,
    TopicsOption,
    VerboseOption,
    new_run,
    one_environment,
    run_of,
    seconds_of,
)
from topicops.model.errors import ExitStatus, UsageError
from topicops.model.printable import plural

if TYPE_CHECKING:
    from topicops.features.moves.planned.electing import Leaders
    from topicops.flow.runs.run import EnvironmentRun
    from topicops.flow.runs.values import Planned

OutOption = Annotated[Path | None, typer.Option("--out", help="Write the plan to this file, for `apply`.")]


def rebalance_command(
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    leaders: Annotated[
        bool, typer.Option("--leaders", help="Only spread the preferred leaders; no replica moves.")
    ] = False,
    brokers: Annotated[
        str | None,
        typer.Option("--brokers", metavar="IDS", help="Only these brokers get replicas, such as new ones: 7,8."),
    ] = None,
    most_bytes: Annotated[
        str | None,
        typer.Option(
            "--bytes", metavar="SIZE", help="Balance bytes in place of counts, and copy at most so many: 500GiB."
        ),
    ] = None,
    racks: Annotated[
        bool, typer.Option("--racks", help="Only move replicas that share a rack although another rack is free.")
    ] = False,
    out: OutOption = None,
    verbose: VerboseOption = False,
    output: FormatOption = "text",
) -> None:
    """Plan moves that give each broker its share of replicas and leaders, as few as can be; `apply` sends them.

    Topics whose files ask for nothing else move, and never to fewer racks. Nothing is written to the cluster.
    """
    from topicops.features.moves.planned.planning import plan_rebalance
    from topicops.features.moves.planned.rebalancing import Wish
    from topicops.features.moves.telling.following import bytes_of

    if leaders and most_bytes is not None:
        raise UsageError("--leaders moves no bytes: leave --bytes out")
    if racks and (leaders or most_bytes is not None):
        raise UsageError("--racks moves only replicas that share a rack: leave --leaders and --bytes out")
    wish = Wish(
        brokers=_ids(brokers),
        most_bytes=None if most_bytes is None else bytes_of(most_bytes),
        leaders_only=leaders,
        racks_only=racks,
    )
    run = new_run(one_environment(environment, topics), topics)
    _show(run, plan_rebalance(run, wish), out, output, verbose=verbose)


def drain_command(
    broker: Annotated[int, typer.Argument(metavar="BROKER", help="Id of the broker that is to be empty.")],
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    out: OutOption = None,
    verbose: VerboseOption = False,
    output: FormatOption = "text",
) -> None:
    """Plan the moves of all replicas off one broker, as if `cluster.draining` named it; `apply` sends them.

    Nothing is written to the cluster. Topics that no file describes move only with `policy.drainUnmanaged: allow`.
    """
    from topicops.features.moves.planned.planning import plan_drain

    run = new_run(one_environment(environment, topics), topics)
    planned = plan_drain(run, broker)
    _show(run, planned, out, output, verbose=verbose)
    drained = sorted({*planned.specs.environment.spec.cluster.draining, broker})
    print_error(
        f"This drains broker {broker} once. So that it stays empty, and each run plans what is left, write in "
        f"{planned.specs.environment.file}, below `cluster:`:  draining: {drained}"
    )


def leaders_command(
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    elect: Annotated[
        bool, typer.Option("--elect", help="Ask, and then let the preferred leaders lead that can.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --elect: do not ask.")] = False,
    lock_timeout: Annotated[
        str, typer.Option("--lock-timeout", help="How long to wait for the lease: 30s, 5m, 1h or seconds.")
    ] = "0s",
    output: TextOrJsonOption = "text",
) -> None:
    """List partitions whose preferred leader does not lead; with --elect, let it lead. No replica moves."""
    from topicops.features.moves.planned.electing import leaders_text, read_leaders

    if yes and not elect:
        raise UsageError("--yes answers the question of --elect: give both")
    wait_s = seconds_of(lock_timeout)
    if elect and not yes and not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask at, so nothing was sent: give --yes")
    run = run_of(one_environment(environment, topics), topics)
    found = read_leaders(run)
    if not elect or not found.can_lead:
        print_value(found, output, leaders_text)
        return
    if not yes:
        print_error(leaders_text(found))
        if asked(f"Let {plural(len(found.can_lead), 'preferred leader')} lead? [y/N] ").lower() not in ("y", "yes"):
            print_error("Nothing was sent.")
            raise typer.Exit(ExitStatus.ERROR)
    ended = _elected(run, found, wait_s)
    print_value(ended, output, leaders_text)
    if any(each.why_not for each in ended.unled if each not in found.unled):
        raise typer.Exit(ExitStatus.PARTLY_DONE)


def _elected(run: EnvironmentRun, found: Leaders, wait_s: float) -> Leaders:
    from topicops.features.moves.planned.electing import elect
    from topicops.features.moves.record import TopicPartition

    refused = elect(run, found.can_lead, lock_timeout_s=wait_s)
    asked_for = set(found.can_lead)
    answers = {each: refused.get(TopicPartition(each.topic, each.partition), "") for each in asked_for}
    unled = (
        replace(each, elected=not answers[each], why_not=answers[each]) if each in asked_for else each
        for each in found.unled
    )
    return replace(found, unled=tuple(unled))


def _show(run: EnvironmentRun, planned: Planned, out: Path | None, output: Format, *, verbose: bool) -> None:
    """Print the plan, keep it where it was asked for, and say how it is applied."""
    from topicops.flow import reporting
    from topicops.flow.runs.run import save_plan
    from topicops.plugged import after_run

    after_run(run, planned.results())
    plan = planned.plan
    shown = plan_of_today(planned, run.home) if output == "text" else plan
    print_result(
        reporting.render(shown, output, planned.comparison.facts, verbose=verbose),
        output,
        file=run.store.path("plan.json"),
    )
    if out is not None:
        save_plan(plan, out)
        print_error(next_line(plan, out))


def _ids(text: str | None) -> tuple[int, ...]:
    """Return the brokers of ``7,8``. Raises ``UsageError``."""
    words = [word.strip() for word in text.split(",")] if text is not None else []
    if not all(word.isascii() and word.isdecimal() for word in words):
        raise UsageError(f"--brokers: {text!r} is no list of broker ids: write 7,8")
    return tuple(sorted({int(word) for word in words}))

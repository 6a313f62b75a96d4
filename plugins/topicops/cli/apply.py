"""``topicops apply``: send what a plan may run, verify it, and say how it ended. The plan is saved, or made here."""

from __future__ import annotations

import logging
import os
import pwd
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Self, TypeVar

import typer

from topicops.cli.output import asked, not_told_today, plan_of_today, print_error, print_result, shown_path
from topicops.cli.shared_options import (
    EnvironmentOption,
    Format,
    FormatOption,
    TopicsOption,
    new_run,
    one_environment,
    seconds_of,
)
from topicops.model.errors import ExitStatus, UsageError, log_error, sentence, status_after_signal
from topicops.model.printable import plural

if TYPE_CHECKING:
    from topicops.flow.runs.run import EnvironmentRun
    from topicops.flow.runs.values import Planned
    from topicops.flow.whole_runs import Ended
    from topicops.model.plans.plan import Approval, Plan

T = TypeVar("T")
logger = logging.getLogger(__name__)


def apply_command(
    plan: Annotated[
        Path | None,
        typer.Argument(metavar="[PLAN]", help="A file written by `plan --out`. Without it: plan, ask, apply."),
    ] = None,
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    only: Annotated[
        str | None, typer.Option("--only", help="Without PLAN: plan only topics whose name matches this glob.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Without PLAN: do not ask. Held changes stay held.")] = False,
    approve: Annotated[
        str | None,
        typer.Option("--approve", help="8 digits or more of the plan's fingerprint: its held changes run too."),
    ] = None,
    lock_timeout: Annotated[
        str, typer.Option("--lock-timeout", help="How long to wait for the lease: 30s, 5m, 1h or seconds.")
    ] = "0s",
    output: FormatOption = "text",
) -> None:
    """Apply a plan through Kafka's Admin API and verify every topic it touched; without PLAN, plan first and ask."""
    from topicops.flow import whole_runs
    from topicops.flow.runs.run import load_plan
    from topicops.plugged import after_run

    wait_s = seconds_of(lock_timeout)
    if plan is not None:
        if environment is not None or only is not None:
            raise UsageError("a plan has its environment and its topics: leave --environment and --only out")
        saved = load_plan(plan)
        run = new_run(saved.target.environment, topics)
        approvals = approvals_of(saved, approve)
        work = partial(whole_runs.apply_plan, run, saved, approvals=approvals, lock_timeout_s=wait_s)
    else:
        if not yes and not sys.stdin.isatty():
            raise UsageError(
                "there is no terminal to ask at, so nothing was sent: give --yes, or write a plan with `plan --out` "
                "and apply that"
            )
        run = new_run(one_environment(environment, topics), topics)
        planned, approvals = planned_and_confirmed(run, only=only, approve=approve, yes=yes, output=output)
        work = partial(whole_runs.apply_own_plan, run, planned, approvals=approvals, lock_timeout_s=wait_s)
    with StopSignals() as stop:
        ended = stop.unless_stopped(lambda: work(interrupted=stop.is_asked))
    after_run(run, ended.results)
    show_report(run, ended, output, own_plan=plan is None)
    raise typer.Exit(stop.exit_status or ended.status)


def planned_and_confirmed(
    run: EnvironmentRun, *, only: str | None, approve: str | None, yes: bool, output: Format
) -> tuple[Planned, tuple[Approval, ...]]:
    """Plan, show the plan, and ask; gives the plan, and what the person approves.

    Nothing is asked where nothing could be sent. Exits with status 1 unless the answer is yes.
    """
    from topicops.flow import planning, reporting
    from topicops.model.plans.changes import GateWord
    from topicops.plugged import ENGINES, after_run

    planned = planning.make_plan(run, engines=ENGINES, states=True, only=only)
    after_run(run, planned.results())
    plan = planned.plan
    shown = reporting.render(plan_of_today(planned, run.home), "text", planned.comparison.facts)
    print_result(shown, output) if output == "text" else print_error(shown)
    approvals = approvals_of(plan, approve)
    ready, held = len(plan.with_gate(GateWord.RUN)), len(plan.held_for(command=True))
    if approvals:
        ready, held = ready + held, 0
    if yes or not ready + held:
        return planned, approvals
    if output == "text" and not sys.stdout.isatty():
        print_error(shown)  # a pipe has it, and nobody can be asked about what he does not see
    answer = asked(question(ready, held, plan.key)).lower()
    if ready and answer in ("y", "yes"):
        return planned, approvals
    problem = plan.key_problem(answer) if held else f"{answer!r} is not yes"
    if not problem:
        return planned, approvals_of(plan, answer)
    print_error("Nothing was sent." if answer in ("", "n", "no") else f"Nothing was sent: {problem}.")
    raise typer.Exit(ExitStatus.ERROR)


def show_report(run: EnvironmentRun, ended: Ended, output: Format, *, own_plan: bool) -> None:
    """Print the report. An error on the way is printed instead: the exit status says what the run did."""
    from topicops.flow import reporting

    report = ended.report
    try:
        if output == "text" and ended.results.environment:
            report = replace(report, notes=not_told_today(report.notes, ended.results.environment, run.home))
        print_result(reporting.shown_report(report, output), output, file=reporting.report_file(run, output))
        if own_plan and report.plan is not None and report.plan.held_for(command=True):
            # The next plan has another fingerprint, and this one is kept.
            file = shown_path(run.store.path("plan.json"))
            print_error(f"To approve what is held: topicops apply {file} --approve {report.plan.key}")
    except Exception as error:  # noqa: BLE001 - whatever it is, requests may have been sent
        log_error(logger, "the report is not shown", error, level=logging.INFO)
        print_error(f"topicops: {sentence(error)}; the run's report is in {shown_path(run.store.folder)}")


def question(ready: int, held: int, key: str) -> str:
    """Return what is asked on the terminal, about changes that may run and those held; ``key`` approves the latter."""
    them = "it" if held == 1 else "them"
    more = f"{plural(held, 'change')} {'is' if held == 1 else 'are'} held; to run {them}"
    apply = f"Apply {'this change' if ready == 1 else f'these {ready} changes'}? [y/N] "
    typed = f"type the first {len(key)} digits: {key}"
    if not ready:
        return f"{more}, {typed}\n> "
    return f"{more} too, {typed}\n{apply}" if held else apply


def approvals_of(saved: Plan, key: str | None) -> tuple[Approval, ...]:
    """Return the approval of ``--approve``: an approval by parameter whose author is the approver; empty without it."""
    from topicops.flow import applying
    from topicops.model.plans.plan import Approval

    if key is None:
        return ()
    name = user_name()
    approval = Approval(
        digests=applying.approved_digests(saved, key),
        way="parameter",
        approver=name,
        signature=f"{name} with --approve",
        given_at=datetime.now(UTC),
        authors=frozenset({name}),
    )
    return (approval,)


def user_name() -> str:
    """Return who runs this command, by the system's own account; a number where it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


class StopSignals:
    """The first Ctrl-C or SIGTERM asks to stop after the request in flight; the second stops at once."""

    def __init__(self) -> None:
        self._received: int | None = None
        self._is_said = False

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._say()

    def unless_stopped(self, work: Callable[[], T]) -> T:
        """Return what ``work`` gives; after a second signal the process ends with the first one's status."""
        try:
            return work()
        except KeyboardInterrupt:
            self._is_said = True
            print_error("stopped at once; the next apply looks first at what became of the request in flight")
            raise typer.Exit(self.exit_status) from None

    def is_asked(self) -> bool:
        self._say()
        return self._received is not None

    @property
    def exit_status(self) -> int:
        """``INTERRUPTED`` or ``TERMINATED`` after a signal, else ``SUCCESS``."""
        return status_after_signal(self._received) if self._received else ExitStatus.SUCCESS

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self._received is not None:
            raise KeyboardInterrupt
        self._received = number
        # A stream takes no text while this thread is inside another write to it: then ``is_asked`` says it a bit later.
        with suppress(RuntimeError):
            self._say()

    def _say(self) -> None:
        """Say, once, that a signal came."""
        if self._received is None or self._is_said:
            return
        print_error("stopping after the request in flight; once more stops at once")
        self._is_said = True

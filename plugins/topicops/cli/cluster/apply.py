"""``topicops apply``: send what a saved plan may run, verify it, and say how it ended."""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Annotated, Self

import typer

from topicops.cli.output import print_result, progress
from topicops.cli.runs import new_run
from topicops.cli.shared_options import FormatOption, TopicsOption
from topicops.model.errors import UsageError
from topicops.model.exit_status import ExitStatus, status_after_signal
from topicops.model.plans.approval import Approval
from topicops.model.plans.plan import Plan


def apply_command(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A file written by `plan --out`.")],
    topics: TopicsOption = Path("topics"),
    approve: Annotated[
        str | None, typer.Option("--approve", help="The plan's fingerprint: lets its held changes run.")
    ] = None,
    lock_timeout: Annotated[
        str, typer.Option("--lock-timeout", help="How long to wait for the lease: 0s, 30s, 5m.")
    ] = "0s",
    output: FormatOption = "text",
) -> None:
    """Apply a saved plan through Kafka's Admin API and verify every topic it touched."""
    from topicops import flow

    saved = flow.load_plan(plan)
    run = new_run(saved.target.environment, topics)
    with StopSignals() as stop:
        ended = stop.unless_stopped(
            lambda: flow.apply_plan(
                run,
                saved,
                approval=approval_of(saved, approve) if approve else None,
                lock_timeout_s=seconds_of(lock_timeout),
                interrupted=stop.is_asked,
            )
        )
    print_result(flow.render_report(run, output), output)
    raise typer.Exit(stop.exit_status or ended)


def approval_of(saved: Plan, fingerprint: str) -> Approval:
    """``--approve``: by the policy an approval by parameter, whose author is the approver himself."""
    from topicops import flow

    name = user_name()
    return Approval(
        digests=flow.approved_digests(saved, fingerprint),
        way="parameter",
        approver=name,
        signature=f"{name} with --approve",
        given_at=datetime.now(UTC),
        authors=frozenset({name}),
    )


def user_name() -> str:
    """Who runs this command, by the system's own account; a number where it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def seconds_of(text: str) -> float:
    """``30s``, ``5m``, ``1h`` or plain seconds. Raises ``UsageError``."""
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    number = text.rstrip("smh")
    unit = text[len(number) :] or "s"
    if not number.isdecimal() or unit not in units:
        raise UsageError(f"{text!r} is no duration: write it as 30s, 5m or 1h")
    return int(number) * units[unit]


class StopSignals:
    """The first Ctrl-C or SIGTERM asks to stop after the request in flight; the second stops at once."""

    def __init__(self) -> None:
        self._received: int | None = None

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def unless_stopped(self, work: Callable[[], int]) -> int:
        """What ``work`` gives; after a second signal the process ends with the first one's status."""
        try:
            return work()
        except KeyboardInterrupt:
            progress("stopped at once; the next apply looks first at what became of the request in flight")
            raise typer.Exit(self.exit_status) from None

    def is_asked(self) -> bool:
        return self._received is not None

    @property
    def exit_status(self) -> int:
        """``INTERRUPTED`` or ``TERMINATED`` after a signal, else ``SUCCESS``."""
        return status_after_signal(self._received) if self._received else ExitStatus.SUCCESS

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self._received is not None:
            raise KeyboardInterrupt
        self._received = number
        progress("stopping after the request in flight; once more stops at once")

"""Results go to stdout, everything else to stderr. Control characters in texts from outside are escaped."""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, TypeVar

from topicops.cli.terminal import for_terminal, is_terminal
from topicops.model.printable import printable, printable_lines
from topicops.standard_streams import taken_loss

if TYPE_CHECKING:
    from topicops.flow.runs.run import Place
    from topicops.flow.runs.values import Planned
    from topicops.model.plans.plan import Plan
    from topicops.model.specs.environment import Environment

T = TypeVar("T")


def print_result(text: str, output: str = "", *, file: Place | None = None) -> None:
    """Print a result; a text for people (``output`` is ``text``) gets colour and folded lines on a terminal.

    Args:
        file: Where the run keeps this result too; named on stderr when stdout cannot take it.
    """
    end_progress()
    print(for_terminal(text, sys.stdout) if output == "text" else text, flush=True)
    if file is not None and (reason := taken_loss(sys.stdout)):
        print_loss(reason, f"; it is in {shown_path(file)}")


def print_value(value: T, output: str, text: Callable[[T], str], markdown: Callable[[T], str] | None = None) -> None:
    """Print a value as JSON, as text, or as Markdown where there is one."""
    from topicops.model.json_types import json_text

    print_result({"json": json_text, "markdown": markdown or text}.get(output, text)(value))


def print_loss(reason: str, place: str = "") -> None:
    """Say that stdout has not taken all of the command's result."""
    print_error(f"topicops: stdout cannot be written ({reason}), so the result is not there{place}")


def print_error(text: str) -> None:
    """Print an error, a warning, or another line that stays."""
    end_progress()
    print(printable_lines(text), file=sys.stderr, flush=True)


def print_warnings(sentences: Iterable[str]) -> None:
    """Print what did not stop the command."""
    for sentence in sentences:
        print_error(f"warning: {sentence}")


DAY_S = 24 * 3600


def plan_of_today(planned: Planned, home: Place) -> Plan:
    """Return the plan with the warnings of ``not_told_today``."""
    change_set = planned.plan.change_set
    warnings = not_told_today(change_set.warnings, planned.specs.environment, home)
    return replace(planned.plan, change_set=replace(change_set, warnings=warnings))


def not_told_today(sentences: Sequence[str], environment: Environment, home: Place) -> tuple[str, ...]:
    """Return the sentences; on a terminal without those about this host that it has shown within a day.

    ``topicops -v`` shows all. Stamps in the home say when each was shown.
    """
    from topicops.flow.runs.run import safety_notes, scratch_folder

    if not is_terminal(sys.stdout) or logging.getLogger().isEnabledFor(logging.INFO):
        return tuple(sentences)
    of_host = set(safety_notes(environment))
    return tuple(
        sentence
        for sentence in sentences
        if sentence not in of_host or _is_news(sentence, scratch_folder(home) / "told")
    )


def _is_news(sentence: str, folder: Path) -> bool:
    import hashlib
    from socket import gethostname

    stamp = folder / hashlib.sha256(f"{gethostname()} {sentence}".encode()).hexdigest()[:16]
    with suppress(OSError):
        if stamp.exists() and 0 <= time() - stamp.stat().st_mtime < DAY_S:
            return False
        folder.mkdir(parents=True, exist_ok=True)
        stamp.touch()
    return True


_CLEAR = "\r\x1b[2K"
_is_open = False
"""Whether a line of progress stands on the terminal, without an end."""


def progress(lines: str) -> None:
    """Print what goes on; on a terminal each line takes the place of the one before, but for ``topicops -v``."""
    for line in lines.split("\n"):
        _show_progress(line)


def _show_progress(line: str) -> None:
    global _is_open
    if not is_terminal(sys.stderr) or logging.getLogger().isEnabledFor(logging.INFO):
        print(printable(line), file=sys.stderr, flush=True)
        return
    if not _is_open:
        atexit.register(end_progress)
    _is_open = True
    shown = printable(line)[: shutil.get_terminal_size().columns - 1]
    print(f"{_CLEAR}{shown}", end="", file=sys.stderr, flush=True)


def end_progress() -> None:
    """Take the line of progress from the terminal, before something is printed that stays."""
    global _is_open
    if _is_open:
        print(_CLEAR, end="", file=sys.stderr, flush=True)
        atexit.unregister(end_progress)
    _is_open = False


def shown_path(path: Place) -> str:
    """Relative to the working folder if it is below that, else absolute."""
    if not isinstance(path, Path):
        return str(path)
    place = Path(os.path.abspath(path))  # noqa: PTH100 - links stay: a person named them
    return str(place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place)


def new_run_id() -> str:
    """Return a unique id that sorts by time: ``20260131T235959Z-1a2b3c``."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.urandom(3).hex()}"


def asked(text: str) -> str:
    """Return what the person types; empty at the end of input."""
    end_progress()
    print(text, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def next_line(plan: Plan, out: Path) -> str:
    """Return what to type next with the plan in ``out``."""
    from topicops.model.plans.changes import GateWord

    place = shlex.quote(str(out))
    if plan.with_gate(GateWord.RUN):
        return f"Wrote {out}; next: topicops apply {place}"
    if plan.held_for(command=True):
        return f"Wrote {out}; everything is held; after a review: topicops apply {place} --approve {plan.key}"
    if plan.held_for(command=False):
        return f"Wrote {out}; everything is held, and --approve does not count here (policy.approvals)"
    return f"Wrote {out}; it has nothing to apply"

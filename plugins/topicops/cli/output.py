"""Results go to stdout, everything else to stderr. Control characters in texts from outside are escaped."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from topicops.cli.standard_streams import taken_loss
from topicops.cli.terminal import for_terminal, is_terminal
from topicops.model.printable import printable, printable_lines

T = TypeVar("T")


def print_result(text: str, output: str = "", *, file: Path | None = None) -> None:
    """Print a result; a text for people (``output`` is ``text``) gets colour and folded lines on a terminal.

    Args:
        file: Where the run keeps this result too; named on stderr when stdout cannot take it.
    """
    end_progress()
    print(for_terminal(text, sys.stdout) if output == "text" else text, flush=True)
    if file is not None:
        print_loss(f"; it is in {shown_path(file)}")


def print_value(value: T, output: str, text: Callable[[T], str], markdown: Callable[[T], str] | None = None) -> None:
    """Print a value as JSON, as text, or as Markdown where there is one."""
    from topicops.model.json_types import json_text

    print_result({"json": json_text, "markdown": markdown or text}.get(output, text)(value))


def print_loss(place: str = "") -> None:
    """Say once that stdout has not taken all of the command's result."""
    if reason := taken_loss(sys.stdout):
        print_error(f"topicops: stdout cannot be written ({reason}), so the result is not there{place}")


def print_error(text: str) -> None:
    """Print an error, a warning, or another line that stays."""
    end_progress()
    print(printable_lines(text), file=sys.stderr, flush=True)


def print_warnings(sentences: Iterable[str]) -> None:
    """Print what did not stop the command."""
    for sentence in sentences:
        print_error(f"warning: {sentence}")


_CLEAR = "\r\x1b[2K"
_is_open = False
"""Whether a line of progress stands on the terminal, without an end."""


def progress(line: str) -> None:
    """Print one line of progress; on a terminal it takes the place of the one before, but for ``topicops -v``."""
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


def shown_path(path: Path) -> str:
    """Relative to the working folder if it is below that, else absolute."""
    place = Path(os.path.abspath(path))  # noqa: PTH100 - links stay: a person named them
    return str(place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place)


def new_run_id() -> str:
    """Return a unique id that sorts by time: ``20260131T235959Z-1a2b3c``."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"

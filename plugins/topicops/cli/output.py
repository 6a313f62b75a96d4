"""Results go to stdout, everything else to stderr. Control characters in texts from outside are escaped."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from topicops.cli.terminal import for_terminal
from topicops.model.printable import printable, printable_lines


def print_result(text: str, output: str = "") -> None:
    """Print a result; a text for people (``output`` is ``text``) gets colour and folded lines on a terminal."""
    _write(for_terminal(text, sys.stdout) if output == "text" else text, sys.stdout)


def print_error(text: str) -> None:
    """Print an error or a warning."""
    _write(printable_lines(text), sys.stderr)


def print_warnings(sentences: Iterable[str]) -> None:
    """Print what did not stop the command."""
    for sentence in sentences:
        print_error(f"warning: {sentence}")


def progress(line: str) -> None:
    """Print one line of progress."""
    _write(printable(line), sys.stderr)


def shown_path(path: Path) -> str:
    """Relative to the working folder if it is below that, else absolute."""
    place = Path(os.path.abspath(path))  # noqa: PTH100 - links stay: a person named them
    return str(place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place)


def _write(text: str, stream: TextIO) -> None:
    """Write a line. A reader that went away, as `head` does, is no error: the command goes on in silence."""
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        silence(stream)


def silence(stream: TextIO) -> None:
    """Send what is still written to nowhere, so that Python's own flush at the end does not fail either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def new_run_id() -> str:
    """A unique id that sorts by time: ``20260131T235959Z-1a2b3c``."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"

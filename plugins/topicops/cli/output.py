"""Results on stdout, everything else on stderr; no control character of somebody else's text reaches either."""

from __future__ import annotations

import secrets
import sys
from datetime import UTC, datetime
from typing import Literal

from topicops.model.printable import printable, printable_lines

Format = Literal["text", "json", "markdown"]
Engine = Literal["spark", "python"]


def print_result(text: str) -> None:
    """Print a result."""
    print(text)


def print_error(text: str) -> None:
    """Print an error or a warning."""
    print(printable_lines(text), file=sys.stderr)


def progress(line: str) -> None:
    """One line of progress."""
    print(printable(line), file=sys.stderr, flush=True)


def new_run_id() -> str:
    """Unique, and sorted by time: ``20260131T235959Z-1a2b3c``."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"

"""Progress of a long command."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Takes one line for a person."""


def quiet(_message: str) -> None:
    """Progress that is not shown."""

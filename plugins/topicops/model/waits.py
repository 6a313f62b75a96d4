"""Long waits are said: what is waited for, how long it has taken, and when the wait ends at the latest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SAID_AFTER_S = 10.0
"""Seconds after which a wait is reported; then again each time that so much has passed."""
_LOOKED_S = 0.5
"""Seconds between two checks of the open waits."""


@dataclass(slots=True, eq=False)
class Wait:
    """One wait that is not over."""

    what: str
    limit_s: float
    began: float = field(default_factory=time.monotonic)
    times_said: int = 0
    thread: int = field(default_factory=threading.get_ident)

    def due(self, now: float) -> str:
        """Return the line to say now; empty: none yet."""
        waited_s = now - self.began
        if waited_s < SAID_AFTER_S * (self.times_said + 1):
            return ""
        self.times_said = int(waited_s // SAID_AFTER_S)
        return f"waiting for {self.what}: {waited_s:.0f} s, at most {self.limit_s:.0f} s"


_open: list[Wait] = []


@contextmanager
def waiting_for(what: str, *, limit_s: float) -> Iterator[None]:
    """Let ``told_waits`` say this wait while the block lasts; inside a wait for the same, it is a part of that one."""
    wait = Wait(what, limit_s)
    around = next((other for other in reversed(_open) if other.thread == wait.thread), None)
    if around is not None and around.what == what:
        yield
        return
    _open.append(wait)
    try:
        yield
    finally:
        _open.remove(wait)


@contextmanager
def told_waits(say: Callable[[str], None]) -> Iterator[None]:
    """Say each wait of this process that lasts, while the block does; of those that are due at once the innermost."""
    is_over = threading.Event()

    def tell() -> None:
        while not is_over.wait(_LOOKED_S):
            now = time.monotonic()
            if due := [line for wait in reversed(_open) if (line := wait.due(now))]:
                say(due[0])

    threading.Thread(target=tell, daemon=True, name="told-waits").start()
    try:
        yield
    finally:
        is_over.set()

"""Python's cyclic collector, which walks everything that is alive again and again while a lot of it is made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Without the collector; it is on again behind the outermost of these.

    What is alive by then counts as old. Else the next allocation would have the collector walk all of it at once.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.unfreeze()
            gc.enable()

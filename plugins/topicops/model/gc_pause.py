"""Pauses Python's cyclic garbage collector, which walks all live objects again and again while many are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the collector inside the block; blocks may be nested, and the outermost one enables it again.

    On leaving, live objects move to the oldest generation: else the next collection would walk all of them at once.
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

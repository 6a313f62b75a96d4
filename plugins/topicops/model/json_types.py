"""Types that msgspec reads, made known to it by one thread at a time."""

from __future__ import annotations

import threading
from typing import TypeVar

import msgspec

T = TypeVar("T")

_lock = threading.Lock()
_known: set[object] = set()


def known(kind: type[T]) -> type[T]:
    """The type, which msgspec knows from now on with all types in it.

    Two threads that read a type for the first time at once crash the process: msgspec 0.22 shows the second one what it
    has found out about a dataclass before it has found out all.
    """
    if kind not in _known:
        with _lock:
            msgspec.json.Decoder(kind)
            _known.add(kind)
    return kind

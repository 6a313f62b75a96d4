"""Types of JSON; those that msgspec reads are made known to it by one thread at a time."""

from __future__ import annotations

import threading
from typing import Annotated, TypeVar

import msgspec

T = TypeVar("T")
FormatVersion = Annotated[str, msgspec.Meta(pattern=r"^1\.[0-9]+$")]
"""Of the first major version. A reader refuses another one, and ignores the fields that a minor one adds."""
Time = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""As in RFC 3339."""

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

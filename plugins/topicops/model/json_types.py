"""JSON: its types, which one thread at a time makes known to msgspec, its errors, its canonical form and digests."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeVar

import msgspec

T = TypeVar("T")
FormatVersion = Annotated[str, msgspec.Meta(pattern=r"^1\.[0-9]+$")]
"""Number of the format, of the first major version. Readers refuse another major and ignore fields of a newer minor."""

_lock = threading.Lock()
_known: set[object] = set()


def known(kind: type[T]) -> type[T]:
    """Return the type, which msgspec knows from now on with all types in it.

    Two threads that read a type for the first time at once crash the process: msgspec 0.22 shows the second one what it
    has found out about a dataclass before it has found out all.
    """
    if kind not in _known:
        with _lock:
            msgspec.json.Decoder(kind)
            _known.add(kind)
    return kind


class JsonError(ValueError):
    """The text says what is wrong with the JSON, without a value of it."""


@contextmanager
def json_errors() -> Iterator[None]:
    """Raise ``JsonError`` for whatever the block finds wrong while it reads JSON."""
    try:
        yield
    except RecursionError:
        raise JsonError("it is nested too deeply") from None  # the cause would be a traceback of a thousand lines
    except (msgspec.MsgspecError, ValueError) as error:
        raise JsonError(str(error)) from error


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: object) -> str:
    """Return the one JSON text of ``value``: keys sorted, no blanks, ASCII only."""
    return _ENCODER.encode(value)


def sha256_of(value: object) -> str:
    """Hex SHA-256 of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def assignment_digest(assignment: Mapping[int, Sequence[int]]) -> str:
    """Return the digest of the replicas of each partition, in order; 16 hex digits are enough to notice a change."""
    rows = {str(partition): replicas for partition, replicas in assignment.items()}
    # The same bytes as canonical_json, as long as all values are integers; in a tenth of the time.
    return hashlib.sha256(msgspec.json.encode(rows, order="sorted")).hexdigest()[:16]


def json_text(value: object) -> str:
    """Write one JSON value in ASCII only, so that it holds no control character."""
    return json.dumps(msgspec.to_builtins(value), indent=2)

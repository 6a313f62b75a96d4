"""One spelling for each value: canonical JSON and the digests made of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import msgspec

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: object) -> str:
    """The one JSON text of ``value``: keys sorted, no blanks, ASCII only."""
    return _ENCODER.encode(value)


def sha256_of(value: object) -> str:
    """Hex SHA-256 of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def assignment_digest(assignment: Mapping[int, Sequence[int]]) -> str:
    """Digest of the replicas of each partition, in order; 16 hex digits are enough to notice a change."""
    rows = {str(partition): replicas for partition, replicas in assignment.items()}
    # The same bytes as canonical_json, as long as all values are integers; in a tenth of the time.
    return hashlib.sha256(msgspec.json.encode(rows, order="sorted")).hexdigest()[:16]

"""One spelling for each value: canonical JSON and the digests made of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: object) -> str:
    """The one JSON text of ``value``: keys sorted, no blanks, ASCII only."""
    return _ENCODER.encode(value)


def sha256_of(value: object) -> str:
    """Hex SHA-256 of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def assignment_digest(assignment: Mapping[int, Sequence[int]]) -> str:
    """Digest of the replicas of each partition, in order; 16 hex digits are enough to notice a change."""
    return sha256_of({str(p): list(assignment[p]) for p in sorted(assignment)})[:16]

"""Which topicops runs: a digest of its own source, because a checkout may change under one version number."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import topicops


@cache
def program_digest() -> str:
    """SHA-256 of every Python file of the package, with its place in it."""
    root, digest = Path(topicops.__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()

"""Errors of the disk as errors of a file: a full disk, a missing right, a network file system that went away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from topicops.model.errors import ArtifactError


@contextmanager
def as_artifact_error(path: Path, problem: str, advice: str = "") -> Iterator[None]:
    """Raise an ``OSError`` of the block as ``ArtifactError``: ``<path>: <problem>: <what the disk says><advice>``."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{path}: {problem}: {error.strerror or error}{advice}") from error

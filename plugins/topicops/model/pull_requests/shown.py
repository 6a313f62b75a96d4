"""The record in a comment: which held changes it shows, and since when. It is signed: people can edit comments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGroup:
    """Changes of one owner that the comment shows since the same moment."""

    owner: str
    since: datetime
    """UTC, by the forge's clock. A review that is older is not about these changes."""
    digests: str
    """Base64 of the digests, 32 bytes each, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChanges:
    format_version: Literal["1.0"] = "1.0"
    repository: str
    pull_request: int
    base_branch: str
    """Whose files named the owners. People can choose another base for an open pull request."""
    environment: str
    text: str
    """SHA-256 of the text of all parts of the comment, without the record: who changes it, ends the record."""
    posted_at: datetime
    """When the forge took this text, UTC. An edit that is later is somebody else's, even if it restores an old text."""
    groups: tuple[ShownGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One change of a record."""

    owner: str
    since: datetime


ShownByDigest = Mapping[str, Shown]

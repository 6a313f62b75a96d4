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
    heads: tuple[str, ...]
    """Newest commits of the branch of which it has shown these changes; a review of another one is not about them."""
    digests: str
    """Base64 of the digests, 32 bytes each, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a record is of: it proves nothing about any other pull request, base branch or environment."""

    repository: str
    pull_request: int
    base_branch: str
    """Its files name the owners. People can choose another base for an open pull request."""
    environment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChanges:
    format_version: Literal["2.0"] = "2.0"
    about: About
    text: str
    """SHA-256 of the text of all parts of the comment, without the record. With another text the record is void."""
    posted_at: datetime
    """When the forge took this text, UTC. A later edit is not ours, even if it puts an old text back."""
    groups: tuple[ShownGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One change of a record."""

    owner: str
    since: datetime
    heads: tuple[str, ...]
    """In the order in which they were the newest commit."""


ShownByDigest = Mapping[str, Shown]

"""What a run leaves for the next ones, a value for each small file below the home."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase

from topicops.model.json_types import FormatVersion, sha256_of
from topicops.model.printable import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSet:
    """Changes that wait for an approval, by digest."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    """Texts such as ``delete topic.orders`` by digest; empty when nothing is held."""
    found_by: str = ""
    """Run whose gate held them, ``<dag id>/<run id>``."""
    author: str | None = None
    """User who started the run that found them first; None means that no user did, as on a schedule."""

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(sorted(self.addresses))

    @property
    def digest(self) -> str:
        """Names the set: the same changes have the same digest, in whatever order and run they were found."""
        return sha256_of(list(self.digests))

    def covers(self, digests: Collection[str]) -> bool:
        return set(digests) <= set(self.addresses)

    def without_topics(self, glob: str) -> HeldSet:
        """Return the part that a run with ``--only glob`` has not seen."""
        kept = {
            d: address
            for d, address in self.addresses.items()
            if not fnmatchcase(address.partition(" topic.")[2], glob)
        }
        return replace(self, addresses=kept)

    def after(self, earlier: HeldSet) -> HeldSet:
        """Return the set, with the author of the earlier one if that held the same changes."""
        is_known = earlier.author is not None and earlier.covers(self.digests)
        return replace(self, author=earlier.author) if is_known else self


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A held change that a person rejected."""

    by: str
    """Person as the audit log names it: ``admin (id 1)``."""
    at: datetime
    run: str
    """Run that asked, ``<dag id>/<run id>``."""
    comment: str = ""

    def __str__(self) -> str:
        said = f": {self.comment}" if self.comment else ""
        return printable(f"rejected by {self.by}, {self.at:%Y-%m-%d %H:%M} UTC{said}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejections:
    by_digest: Mapping[str, Rejection] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestPlan:
    run: str
    """Name of the run, ``<dag id>/<run id>``."""
    run_after: datetime
    """Time that Airflow orders runs by; clearing does not change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestGood:
    run: str
    at: datetime
    topics: str = ""
    """Folder with the environment's file; empty where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCommit:
    commit: str
    run: str
    """Run that verified it, ``<group>/<run id>``."""
    at: datetime
    """Time of the end of that run, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The newest stop that a person asked for."""

    word: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCount:
    """Number of topics of a cluster at its last complete snapshot, or before a run deletes topics."""

    format_version: FormatVersion = "1.0"
    cluster_id: str
    topics: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeMark:
    """What a home has and no other folder, whatever their paths are."""

    format_version: FormatVersion = "1.0"
    token: str
    """Random text."""

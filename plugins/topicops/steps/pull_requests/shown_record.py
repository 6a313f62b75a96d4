"""Writes and reads the hidden line of a comment that says which changes it shows."""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from topicops.model.pull_requests.shown import Shown, ShownByDigest, ShownChanges, ShownGroup
from topicops.steps.pull_requests.signing import is_signed, signature_of

PURPOSE = "shown"
"""Of the signature."""
_LINE = re.compile(r"<!-- topicops:record ([A-Za-z0-9+/=]+) ([0-9a-f]{64}) -->")
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a record is of: it proves nothing about any other pull request, base branch or environment."""

    repository: str
    pull_request: int
    base_branch: str
    environment: str


def record_line(shown: ShownByDigest, key: bytes, about: About) -> str:
    """One line of HTML that browsers do not show."""
    groups: defaultdict[tuple[str, datetime], list[str]] = defaultdict(list)
    for digest, entry in shown.items():
        groups[entry.owner, entry.since].append(digest)
    record = ShownChanges(
        repository=about.repository,
        pull_request=about.pull_request,
        base_branch=about.base_branch,
        environment=about.environment,
        groups=tuple(
            ShownGroup(owner=owner, since=since, digests=_packed(digests))
            for (owner, since), digests in sorted(groups.items())
        ),
    )
    text = base64.b64encode(msgspec.json.encode(record)).decode()
    return f"<!-- topicops:record {text} {signature_of(record, key, purpose=PURPOSE)} -->"


def read_record(body: str, key: bytes, about: About) -> ShownByDigest | None:
    """What the comment showed; None if its last line is no record of this very comment, signed with the key."""
    match = _LINE.fullmatch(body.rstrip().rpartition("\n")[2].strip())
    if match is None:
        return None
    try:
        record = msgspec.json.decode(base64.b64decode(match[1], validate=True), type=ShownChanges)
        shown = dict(_unpacked(record))
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None
    said = About(
        repository=record.repository,
        pull_request=record.pull_request,
        base_branch=record.base_branch,
        environment=record.environment,
    )
    return shown if is_signed(record, match[2], key, purpose=PURPOSE) and said == about else None


def shown_from(earlier: ShownByDigest, owners: Mapping[str, str], *, posted_at: datetime) -> ShownByDigest:
    """What the comment shows as of ``posted_at``: a change that it has shown all the while keeps its time.

    Args:
        earlier: What its record said before this edit.
        owners: By digest, whose change it is; of all changes that the comment shows now.
    """
    return {digest: _since(earlier.get(digest), owner, posted_at) for digest, owner in owners.items()}


def already_shown(earlier: ShownByDigest, owners: Mapping[str, str]) -> ShownByDigest:
    """The part of the earlier record that still holds."""
    return {d: shown for d, shown in earlier.items() if owners.get(d) == shown.owner}


def _since(earlier: Shown | None, owner: str, posted_at: datetime) -> Shown:
    return earlier if earlier is not None and earlier.owner == owner else Shown(owner=owner, since=posted_at)


def _packed(digests: Collection[str]) -> str:
    return base64.b64encode(b"".join(bytes.fromhex(digest) for digest in sorted(digests))).decode()


def _unpacked(record: ShownChanges) -> Iterator[tuple[str, Shown]]:
    for group in record.groups:
        raw = base64.b64decode(group.digests, validate=True)
        for first in range(0, len(raw), _DIGEST_BYTES):
            yield raw[first : first + _DIGEST_BYTES].hex(), Shown(owner=group.owner, since=group.since)

"""Writes and reads the hidden line of a comment that says which changes it shows."""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from topicops.features.pull_requests.signed_reviews import is_signed, signature_of
from topicops.features.pull_requests.values import About, Shown, ShownByDigest, ShownChanges, ShownGroup
from topicops.model.json_types import sha256_of

PURPOSE = "shown"
"""Of the signature."""
_LINE = re.compile(r"<!-- topicops:record ([A-Za-z0-9+/=]+) ([0-9a-f]{64}) -->")
_DIGEST_BYTES = 32
MOST_HEADS = 10
"""Commits that a record names of one change, each with forty characters of the comment."""
SIGNED_WITHIN = timedelta(seconds=30)
"""A text of ours has its record within this time after the forge took it."""


def record_line(shown: ShownByDigest, key: bytes, about: About, *, texts: Sequence[str], posted_at: datetime) -> str:
    """One line of HTML that browsers do not show; its length depends on ``shown`` and ``about`` alone.

    Args:
        texts: All parts of the comment; a record in them does not count.
        posted_at: When the forge took them.
    """
    groups: defaultdict[tuple[str, datetime, tuple[str, ...]], list[str]] = defaultdict(list)
    for digest, entry in shown.items():
        groups[entry.owner, entry.since, entry.heads].append(digest)
    record = ShownChanges(
        about=about,
        text=_digest(texts),
        posted_at=posted_at.replace(microsecond=0),
        groups=tuple(
            ShownGroup(owner=owner, since=since, heads=heads, digests=_packed(digests))
            for (owner, since, heads), digests in sorted(groups.items())
        ),
    )
    text = base64.b64encode(msgspec.json.encode(record)).decode()
    return f"<!-- topicops:record {text} {signature_of(record, key, purpose=PURPOSE)} -->"


def read_record(texts: Sequence[str], key: bytes, about: About, *, updated_at: datetime) -> ShownByDigest | None:
    """What the comment showed; None if the first part ends with no record of this very comment, signed with the key.

    Args:
        texts: All parts of the comment, in their order.
        updated_at: When the first part was last edited, by the forge.
    """
    match = _LINE.fullmatch(_lines(texts[0])[-1]) if texts and texts[0].strip() else None
    if match is None:
        return None
    try:
        record = msgspec.json.decode(base64.b64decode(match[1], validate=True), type=ShownChanges)
        shown = dict(_unpacked(record))
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None
    if record.about != about or record.text != _digest(texts) or updated_at > record.posted_at + SIGNED_WITHIN:
        return None
    return shown if is_signed(record, match[2], key, purpose=PURPOSE) else None


def with_record(text: str, line: str) -> str:
    """The text of a first part that ends with this record, in the place of an earlier one."""
    lines = _lines(text)
    return "\n".join([*(lines[:-1] if _LINE.fullmatch(lines[-1]) else lines), line]) + "\n"


def _lines(text: str) -> list[str]:
    """Forges may drop blanks at the ends."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _digest(texts: Sequence[str]) -> str:
    said = [[line for line in _lines(text) if not _LINE.fullmatch(line)] for text in texts]
    return sha256_of("\f".join("\n".join(lines).rstrip() for lines in said))


def shown_from(earlier: ShownByDigest, owners: Mapping[str, str], *, head: str, posted_at: datetime) -> ShownByDigest:
    """What the comment shows as of ``posted_at``: a change that it has shown all the while keeps its time.

    Args:
        earlier: The part of its record of before this edit that still holds.
        owners: By digest, whose change it is; of all changes that the comment shows now.
        head: The newest commit of the branch, of which the comment shows the plan.
    """
    new = {digest: Shown(owner=owner, since=posted_at, heads=(head,)) for digest, owner in owners.items()}
    return new | {digest: _also_of(head, earlier[digest]) for digest in new.keys() & earlier.keys()}


def already_shown(earlier: ShownByDigest, owners: Mapping[str, str]) -> ShownByDigest:
    """The part of the earlier record that still holds."""
    return {d: shown for d, shown in earlier.items() if owners.get(d) == shown.owner}


def _also_of(head: str, shown: Shown) -> Shown:
    """The same change, shown of one more commit. The first commit and the newest ones stay where there are many."""
    heads = (*(known for known in shown.heads if known != head), head)
    return replace(shown, heads=heads if len(heads) <= MOST_HEADS else (heads[0], *heads[1 - MOST_HEADS :]))


def _packed(digests: Collection[str]) -> str:
    return base64.b64encode(b"".join(bytes.fromhex(digest) for digest in sorted(digests))).decode()


def _unpacked(record: ShownChanges) -> Iterator[tuple[str, Shown]]:
    for group in record.groups:
        raw = base64.b64decode(group.digests, validate=True)
        for first in range(0, len(raw), _DIGEST_BYTES):
            yield (
                raw[first : first + _DIGEST_BYTES].hex(),
                Shown(owner=group.owner, since=group.since, heads=group.heads),
            )

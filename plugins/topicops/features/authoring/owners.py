"""Owners and domains that people give to the commands that write specs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from topicops.model.errors import UsageError

LONGEST_OWNER = 200
FOLDERS_WITH_MEANING = ("environments", "profiles")
"""Folders of other files; no topic file can be in them."""
OTHER_DOMAIN = "other"
"""The folder for topics whose names have no domain."""
_PLACEHOLDER = re.compile(
    r"[\W_]*(?:todo|tbd|tba|fixme|change[-_ ]?me|unknown|none|nobody|n/?a|x+)?[\W_]*", re.IGNORECASE
)
_FOLDER = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOwners:
    """Owners of topics, by their names."""

    patterns: tuple[tuple[str, str], ...] = ()
    """Glob patterns with their owners, as a file of owners has them."""
    otherwise: str | None = None
    """Owner of all other topics."""

    def of(self, topic: str) -> str | None:
        """Give the owner by the first pattern that fits; None means nobody."""
        return next((owner for pattern, owner in self.patterns if fnmatchcase(topic, pattern)), self.otherwise)


def checked_owner(owner: str) -> str:
    """Return the owner, unless it is a placeholder. Raises ``UsageError``."""
    if _PLACEHOLDER.fullmatch(owner):
        raise UsageError(f"--owner {owner!r} names no team or person; name one, as in: --owner team-payments")
    if len(owner) > LONGEST_OWNER or not owner.isprintable():
        raise UsageError(f"--owner: a name of at most {LONGEST_OWNER} characters on one line")
    return owner


def checked_domain(domain: str | None) -> str | None:
    """Return a folder below ``topics/``, if one was given. Raises ``UsageError``."""
    if domain is not None and (domain in FOLDERS_WITH_MEANING or not _FOLDER.fullmatch(domain)):
        raise UsageError(
            f"--domain {domain!r}: one folder of letters, digits, dot, underscore and dash; "
            f"{' and '.join(FOLDERS_WITH_MEANING)} hold other files"
        )
    return domain


def domain_of(topic: str) -> str:
    """Return the first dotted part of a legal name, if it can be a folder of topics."""
    first, dot, _ = topic.partition(".")
    return first if dot and first and first not in FOLDERS_WITH_MEANING else OTHER_DOMAIN

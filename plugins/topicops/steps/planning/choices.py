"""What a person chose for single changes of a question, beside its two buttons.

Reject rejects everything. Approve approves all changes but those that the form marks. A choice that is not understood
approves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

from topicops.model.plans.changes import Change

AS_THE_BUTTON, REJECTED = "as the button says", "reject"
"""What the field of one change takes."""
REJECT_FIELD = "reject"
"""The one field of a long question: names or patterns of topics."""
COMMENT = "comment"
MOST_FIELDS = 10
"""A question of more changes has ``REJECT_FIELD`` instead of a field for each."""


def title_of(change: Change) -> str:
    """``delete legacy.orders-v1``: the name of its field."""
    return f"{change.action} {change.topic}"


def fields_of(titles: Mapping[str, str], rejected_before: Collection[str]) -> dict[str, str]:
    """The fields of the form without the comment, and what each holds at first.

    Args:
        titles: By digest of the change.
        rejected_before: Digests of changes that are marked from the start.
    """
    if len(titles) < 2:
        return {}
    if len(titles) <= MOST_FIELDS:
        return {title: REJECTED if d in rejected_before else AS_THE_BUTTON for d, title in titles.items()}
    return {REJECT_FIELD: ", ".join(sorted({_topic(titles[d]) for d in titles.keys() & rejected_before}))}


def marked(titles: Mapping[str, str], fields: Mapping[str, str], given: Mapping[str, str]) -> frozenset[str] | str:
    """The digests of the changes that the form marks as rejected, or why the answer is not understood.

    Args:
        fields: As ``fields_of`` gives them; a field that is not given keeps what it held.
    """
    if unknown := sorted(given.keys() - fields.keys()):
        return f"the answer has a field that the question has not: {unknown[0]!r}"
    chosen = {**fields, **given}
    if REJECT_FIELD in fields:
        return _matching(titles, chosen[REJECT_FIELD])
    return frozenset(d for d, title in titles.items() if chosen.get(title, AS_THE_BUTTON) != AS_THE_BUTTON)


def _matching(titles: Mapping[str, str], written: str) -> frozenset[str] | str:
    found: set[str] = set()
    for pattern in filter(None, re.split(r"[\s,;]+", written)):
        matches = {d for d, title in titles.items() if fnmatchcase(_topic(title), pattern)}
        if not matches:
            return f"the field {REJECT_FIELD} names {pattern!r}, which is no topic of the question"
        found |= matches
    return frozenset(found)


def _topic(title: str) -> str:
    return title.partition(" ")[2]

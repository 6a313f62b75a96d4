"""Changes that are not in place, grouped by their reason: one cause is one line, however many topics it is about."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from topicops.model.runs.results import IN_PLACE, Outcome, OutcomeStatus

_WHOLE_NAME = re.compile(r"[\w.-]+")
"""What may be a topic's name, with a full stop that may follow it."""
_ORDER = (OutcomeStatus.UNKNOWN, OutcomeStatus.FAILED, OutcomeStatus.REFUSED, OutcomeStatus.NOT_SENT)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some changes are not in place."""

    status: OutcomeStatus
    message: str
    """Without the topic's name, where it is in it."""
    outcomes: tuple[Outcome, ...]

    def __str__(self) -> str:
        why = f": {self.message}" if self.message else ""
        return f"{len(self.outcomes)} {self.status}{why}"


def reasons_of(outcomes: Iterable[Outcome]) -> list[Reason]:
    """The gravest first, and of these the one with most changes."""
    groups: dict[tuple[OutcomeStatus, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.status not in IN_PLACE:
            groups[outcome.status, _without_name(outcome)].append(outcome)
    found = [Reason(status, message, tuple(each)) for (status, message), each in groups.items()]
    return sorted(found, key=lambda reason: (_ORDER.index(reason.status), -len(reason.outcomes)))


def _without_name(outcome: Outcome) -> str:
    """Only the whole name is replaced: ``test`` is a part of other words and of other names."""

    def replaced(found: re.Match[str]) -> str:
        name = found[0].rstrip(".")
        is_topic = name.removeprefix("topic.") == outcome.topic or name == outcome.topic
        return f"the topic{found[0][len(name) :]}" if is_topic else found[0]

    return _WHOLE_NAME.sub(replaced, outcome.message)

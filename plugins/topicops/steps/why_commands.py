"""The command that says why a topic is not healthy, for every place that shows such a topic."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

MOST = 4
"""Commands that one text shows; JSON has all."""


def why_command(topic: str, environment: str) -> str:
    """``topicops why payments.orders --environment prod``."""
    if topic.startswith("-"):  # else it would be read as an option
        return f"topicops why --environment {environment} -- {shlex.quote(topic)}"
    return f"topicops why {shlex.quote(topic)} --environment {environment}"


def why_commands(topics: Iterable[str], environment: str) -> list[str]:
    """One line for each of the first topics, and how many more there are."""
    named = list(dict.fromkeys(topics))
    more = len(named) - MOST
    shown = [why_command(topic, environment) for topic in named[:MOST]]
    return [*shown, f"… and {more} more; topicops why takes any of them"] if more > 0 else shown

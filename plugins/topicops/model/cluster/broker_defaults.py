"""What each broker uses for the configs that a topic does not set: brokers have settings of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

BrokerDefaults = Mapping[int, Mapping[str, str] | str]
"""Canonical value of each config on a topic without override, by broker; a sentence if a broker gave none."""


@dataclass(frozen=True, slots=True)
class DefaultOnBrokers:
    """A value of one config on the topics that do not set it, and the brokers that use it."""

    value: str | None
    """Canonical value; None means that the brokers did not give it."""
    brokers: tuple[int, ...]
    """Brokers with this value. Empty means all brokers, or without a value the controllers."""

    @property
    def text(self) -> str:
        return "not known" if self.value is None else self.value

    @property
    def whose(self) -> str:
        """``brokers 2, 3``; empty for the value of all brokers."""
        return brokers_text(self.brokers) if self.brokers or self.value is None else ""


ON_CONTROLLERS = DefaultOnBrokers(None, ())
"""Default of KRaft's controllers, which no broker sends."""
OF_CONTROLLERS = frozenset({"unclean.leader.election.enable"})
"""Configs whose default KRaft takes from the controllers' own file.

Source: org.apache.kafka.controller.ConfigurationControlManager#getTopicConfig (4.0, KAFKA-12670).
"""


Default = tuple[DefaultOnBrokers, ...]
"""Default of one config: one row for each value, in the order of the first broker that has it."""


def default_of(config: str, defaults: BrokerDefaults | None, brokers: Collection[int]) -> Default:
    """Return what these brokers use for a config that a topic does not set; also brokers without an answer."""
    found: dict[str | None, list[int]] = {}
    for broker in sorted(brokers):
        given = (defaults or {}).get(broker, "")
        found.setdefault(None if isinstance(given, str) else given.get(config), []).append(broker)
    return tuple(DefaultOnBrokers(value, tuple(which)) for value, which in found.items())


def possible(default: Default) -> tuple[str | None, ...]:
    """Return each value that may count; None among them: one is not known."""
    return tuple(row.value for row in default) or (None,)


def is_known(default: Default) -> bool:
    """Return whether every broker gave its value."""
    return None not in possible(default)


def agreed(default: Default) -> str | None:
    """Return the value if all brokers gave the same one; else None."""
    return default[0].value if len(default) == 1 else None


def default_text(default: Default) -> str:
    """Return ``604800000 on broker 1, not known on brokers 2, 3``; without brokers where these are not named."""
    rows = (f"{row.text} on {row.whose}" if row.whose else row.text for row in default)
    return ", ".join(rows) or "not known"


def not_given(default: Default) -> str:
    """Return ``no broker gave its`` or ``brokers 2, 3 gave no``, before "default"; empty: all gave one."""
    unknown = [row.brokers for row in default if row.value is None]
    if len(unknown) == len(default):
        return "no broker gave its"
    return f"{brokers_text(unknown[0])} gave no" if unknown else ""


def without_answer(defaults: BrokerDefaults) -> list[str]:
    """Return a sentence for each broker that gave no defaults."""
    return [f"broker {broker} {given}" for broker, given in sorted(defaults.items()) if isinstance(given, str)]


def unoffered_text(sentences: Mapping[int, str]) -> str:
    """Return ``broker 1 offers no X, broker 2 offers no X``; for refusals once ``X: NAME (code) on brokers 1, 2``."""
    refusing: dict[str, list[int]] = {}
    for broker, sentence in sorted(sentences.items()):
        refusing.setdefault(sentence.partition("refuses ")[2], []).append(broker)
    offering = [sentences[broker] for broker in refusing.pop("", [])]
    return ", ".join([*offering, *(f"{refusal} on {brokers_text(brokers)}" for refusal, brokers in refusing.items())])


def brokers_text(brokers: Collection[int]) -> str:
    """Return ``broker 1``, ``brokers 2, 3``; for none of them ``the controllers``."""
    if not brokers:
        return "the controllers"
    return f"broker{'s' if len(brokers) > 1 else ''} {', '.join(map(str, sorted(brokers)))}"

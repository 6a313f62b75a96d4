"""Whether the brokers of a release take the value of a topic config, and why not.

Source: LogConfig#validate of each release. Before 2.0 Kafka checks no ``message.timestamp.type``, and before 2.1 no
``message.format.version``: brokers take any text, and then cannot open the topic's logs. Here such a text is refused.
"""

from __future__ import annotations

import re
from functools import lru_cache

from topicops.model.release import FIRST_REQUESTS, Release
from topicops.model.specs.topic_config import (
    LARGEST_INT,
    TOPIC_CONFIGS,
    ConfigValue,
    ConfigValueError,
    Constraint,
    TopicConfig,
    configs_of,
    typed,
    vendor_config,
    without_unit,
)

_VALUES_KEPT = 4096
"""Number of judged values that are remembered: many topics share one."""


@lru_cache(_VALUES_KEPT)
def config_problem(name: str, text: str, release: Release) -> str:
    """Return why brokers of this release would refuse the value; empty when they take it."""
    config = configs_of(release).get(name) or vendor_config(name)
    if config is None:
        return no_such_config(name, release)
    try:
        require_taken(config, typed(config, text))
    except ConfigValueError as error:
        return str(error)
    return ""


def value_problem(name: str, text: str, release: Release) -> str:
    """Judge as ``config_problem``; empty for a config that this release lacks, which is a problem of the name."""
    return config_problem(name, text, release) if name in configs_of(release) else ""


def later_problem(name: str, text: str, release: Release) -> str:
    """Return why brokers of the next release that refuses this value will refuse it; empty: none that is known does."""
    later = sorted(each for each in FIRST_REQUESTS if each > release)
    return next((problem for each in later if (problem := config_problem(name, text, each))), "")


def check_written(config: TopicConfig, text: str) -> None:
    """Check as ``canonical_written``; raises ``ConfigValueError`` too if brokers of the release refuse the value."""
    require_taken(config, typed(config, without_unit(config, text)))


def no_such_config(name: str, release: Release) -> str:
    """Return why brokers of this release do not have the config, where they do not."""
    config = TOPIC_CONFIGS.get(name)
    if config is None:
        return f"Kafka has no topic config {name}"
    if config.removed_in is not None and release >= config.removed_in:
        return f"{name} is gone since Kafka {config.removed_in}"
    return f"{name} comes with Kafka {config.since}"


def require_taken(config: TopicConfig, value: ConfigValue) -> None:
    """Raise ``ConfigValueError`` unless brokers of the config's release take this value of the right type."""
    constraint = config.constraint
    match constraint.kind:
        case "range" if isinstance(value, int | float) and not (
            value in constraint.also or not (value < constraint.min or value > constraint.max)
        ):
            raise _refusal(config, _range(constraint, of_release=config.differs_by_release))
        case "enum" if isinstance(value, str) and value not in constraint.values:
            raise _refusal(config, f"one of {', '.join(constraint.values)}")
        case "list" if isinstance(value, tuple):
            _require_items(config, value)
        case "version" if isinstance(value, str) and not is_release_name(config, value):
            raise ConfigValueError(f"Kafka {config.release} knows no release of that name")
        case _:
            return


def is_release_name(config: TopicConfig, text: str) -> bool:
    """Return whether brokers of the config's release know the name; patch numbers behind it are ignored.

    Source: kafka.api.ApiVersion#apply, org.apache.kafka.server.common.MetadataVersion#fromVersionString.
    """
    since = config.names.get(".".join(text.split(".")[: 3 if text.startswith("0.") else 2]))
    return since is not None and since <= config.release


def _refusal(config: TopicConfig, valid: str) -> ConfigValueError:
    return ConfigValueError(f"Kafka {config.release} takes {valid}" if config.differs_by_release else valid)


def _range(constraint: Constraint, *, of_release: bool) -> str:
    extra = "".join(f" or {number}" for number in constraint.also)
    if constraint.max < LARGEST_INT:
        return f"from {constraint.min} to {constraint.max}{extra}"
    return f"{constraint.min} or more{extra}" if of_release else f"at least {constraint.min}{extra}"


def _require_items(config: TopicConfig, items: tuple[str, ...]) -> None:
    constraint = config.constraint
    if constraint.or_exactly is not None and items == (constraint.or_exactly,):
        return
    for item in items:
        if constraint.items and item not in constraint.items:
            raise _refusal(config, f"a list of {', '.join(constraint.items)}; {item!r} is none of them")
        # ASCII digits only: Kafka's expression spells out 0-9.
        if constraint.pattern is not None and not re.search(constraint.pattern, item):
            raise _refusal(config, f"{config.valid}; {item!r} is neither")

"""Where brokers say that the value of a config comes from.

Source: DescribeConfigsResponse.ConfigSource and DescribeConfigsResponse.json (3.9).
"""

from __future__ import annotations

from confluent_kafka.admin import ConfigSource  # type: ignore[attr-defined]  # its stub re-exports without saying so

NOT_TOLD = (-1, ConfigSource.UNKNOWN_CONFIG.value)
"""What clients read from brokers before Kafka 1.1, whose answers have no such field (KIP-226)."""


def is_override(source: int, *, is_default: bool) -> bool:
    """Whether a value is set on its topic; brokers before Kafka 1.1 only tell whether it is a default."""
    return not is_default if source in NOT_TOLD else bool(source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value)


def is_written(source: int) -> bool:
    """Whether somebody wrote a broker's setting; False too where the broker does not tell."""
    return source not in (*NOT_TOLD, ConfigSource.DEFAULT_CONFIG.value)

"""The settings of a broker that decide what it does with a topic's config without an override."""

from __future__ import annotations

from collections.abc import Mapping

from topicops.model.release import ONE_MESSAGE_FORMAT, Release
from topicops.model.specs.topic_config import TOPIC_CONFIGS, canonical_values

MS_IN_UNIT = {"minutes": 60_000, "hours": 3_600_000}
"""Units of broker settings whose topic config is in ms."""
NO_LIMIT_MS = str((1 << 63) - 1)
TIMESTAMP_LIMITS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
TIMESTAMP_DIFFERENCE = "message.timestamp.difference.max.ms"
MESSAGE_FORMAT = "message.format.version"
PROTOCOL = "inter.broker.protocol.version"
SETTINGS_OF_TOPICS = (*dict.fromkeys(s for c in TOPIC_CONFIGS.values() for s in c.broker_synonyms), PROTOCOL)
"""Settings by the broker's own names."""


def topic_defaults(broker_settings: Mapping[str, str]) -> dict[str, str]:
    """Translate a broker's settings into the configs of a topic without override, canonical.

    Args:
        broker_settings: By the broker's own names; a setting without a value is left out.
    Source: org.apache.kafka.server.config.ServerTopicConfigSynonyms, KafkaConfig#extractLogConfigMap (3.9).
    """
    defaults = {name: _default(name, broker_settings) for name in TOPIC_CONFIGS}
    if _ignores_message_format(broker_settings):
        defaults[MESSAGE_FORMAT] = TOPIC_CONFIGS[MESSAGE_FORMAT].default
    for limit in TIMESTAMP_LIMITS:
        # The older limit is for both, until the newer one is set; brokers before 3.6 have no newer one.
        if defaults[limit] == NO_LIMIT_MS or not broker_settings.keys() & TOPIC_CONFIGS[limit].broker_synonyms:
            defaults[limit] = defaults[TIMESTAMP_DIFFERENCE]
    return canonical_values(defaults)


def setting_in_force(config: str, broker_settings: Mapping[str, str]) -> str | None:
    """Return the broker's setting that a topic without this config follows; None means Kafka's own default."""
    return next((name for name in TOPIC_CONFIGS[config].broker_synonyms if name in broker_settings), None)


def _default(name: str, broker_settings: Mapping[str, str]) -> str:
    """Return the text of the default; ``168`` hours are given in ms, and a negative time as -1, which is no limit."""
    setting = setting_in_force(name, broker_settings)
    if setting is None:
        return TOPIC_CONFIGS[name].default
    text, factor = broker_settings[setting], MS_IN_UNIT.get(setting.rpartition(".")[2])
    return text if factor is None else str(max(-1, int(text) * factor))


def _ignores_message_format(broker_settings: Mapping[str, str]) -> bool:
    """Return whether brokers ignore the setting and write one format; under KRaft they may have no protocol setting."""
    protocol = Release.parse(broker_settings.get(PROTOCOL, ""))
    return protocol is None or protocol >= ONE_MESSAGE_FORMAT

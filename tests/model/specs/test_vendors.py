"""Configs of vendors stand beside Kafka's: read by their type, judged by nobody but the vendor's brokers."""

from __future__ import annotations

import pytest

from topicops.model.release import NEWEST, OLDEST
from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.topic_config import TOPIC_CONFIGS, canonical, config_of, configs_of
from topicops.model.specs.vendors import VENDORS, vendor_at


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        pytest.param("confluent.value.schema.validation", "Confluent", id="in the table"),
        pytest.param("confluent.no.such.thing", "Confluent", id="by its prefix"),
        pytest.param("redpanda.iceberg.mode", "Redpanda", id="another vendor"),
        pytest.param("write.caching", "Redpanda", id="without a prefix"),
        pytest.param("diskless.enable", "Aiven", id="of a table and a prefix"),
        pytest.param("retention.ms", "", id="Kafka's own"),
        pytest.param("retention.mss", None, id="nobody's"),
        pytest.param("confluentx", None, id="no prefix"),
    ],
)
def test_a_config_is_kafkas_or_a_vendors_or_nobodys(name: str, vendor: str | None) -> None:
    config = config_of(name)

    assert (config.vendor if config else None) == vendor


def test_no_vendor_takes_a_name_of_kafka_and_no_release_has_a_vendors() -> None:
    names = {name for vendor in VENDORS for name in vendor.configs}

    assert not names & TOPIC_CONFIGS.keys()
    assert not [name for name in TOPIC_CONFIGS if name.startswith(tuple(p for v in VENDORS for p in v.prefixes))]
    assert not names & configs_of(NEWEST).keys()


@pytest.mark.parametrize("release", [OLDEST, NEWEST], ids=str)
def test_a_value_of_another_type_is_a_problem_and_each_other_value_is_left_to_the_brokers(release: object) -> None:
    assert canonical("confluent.tier.enable", "TRUE") == "true"
    assert canonical("redpanda.iceberg.mode", " Key_Value ") == "Key_Value"
    assert config_problem("confluent.tier.enable", "sometimes", NEWEST)
    assert not config_problem("retention.local.target.ms", "-1", NEWEST)
    assert not config_problem("confluent.no.such.thing", "anything", OLDEST)


@pytest.mark.parametrize(
    ("servers", "vendor"),
    [
        ("pkc-1.europe-west1.gcp.confluent.cloud:9092", "Confluent"),
        ("b1:9092,SASL_SSL://seed-1.fmc.PRD.cloud.redpanda.com:9092", "Redpanda"),
        ("boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com:9098", "Amazon MSK Serverless"),
        ("b-1.mine.kafka.eu-west-1.amazonaws.com:9096", ""),
        ("kafka.confluent.cloud.example.com:9092", ""),
        ("b1:9092", ""),
    ],
)
def test_a_vendor_is_known_by_the_names_of_its_brokers(servers: str, vendor: str) -> None:
    assert vendor_at(servers) == vendor

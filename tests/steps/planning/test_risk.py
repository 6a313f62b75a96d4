import pytest

from topicops.model.specs.environment import Risk
from topicops.model.specs.topic_config import THROTTLE_LISTS, TOPIC_CONFIGS
from topicops.steps.planning.risk import RISKS, NeverPlanned, config_risk, worst

LARGEST = str(2**63 - 1)


def test_every_topic_config_of_kafka_has_a_row_and_nothing_else_has() -> None:
    assert set(RISKS) == set(TOPIC_CONFIGS)


def test_the_throttle_lists_are_never_planned() -> None:
    assert {name for name, row in RISKS.items() if isinstance(row, NeverPlanned)} == THROTTLE_LISTS
    with pytest.raises(ValueError, match="never planned"):
        config_risk("leader.replication.throttled.replicas", None, "*", None)


BOTH_WAYS = [
    ("cleanup.policy", "compact", "delete", "destructive", "destructive", "destructive", "TOP414"),
    ("compression.gzip.level", "1", "2", "notice", "notice", "notice", None),
    ("compression.lz4.level", "1", "2", "notice", "notice", "notice", None),
    ("compression.type", "gzip", "zstd", "notice", "notice", "notice", None),
    ("compression.zstd.level", "-5", "2", "notice", "notice", "notice", None),
    ("delete.retention.ms", "10", "90", "notice", "risky", "risky", None),
    ("errors.deadletterqueue.group.enable", "false", "true", "notice", "notice", "notice", None),
    ("file.delete.delay.ms", "10", "90", "notice", "notice", "notice", None),
    ("flush.messages", "10", "90", "risky", "risky", "risky", None),
    ("flush.ms", "10", "90", "risky", "risky", "risky", None),
    ("index.interval.bytes", "10", "90", "notice", "notice", "notice", None),
    ("local.retention.bytes", "10", "90", "notice", "risky", "risky", None),
    ("local.retention.ms", "10", "90", "notice", "risky", "risky", None),
    ("max.compaction.lag.ms", "10", "90", "notice", "notice", "notice", None),
    ("max.decompressed.message.bytes", "10", "90", "notice", "risky", "risky", None),
    ("max.message.bytes", "10", "90", "notice", "risky", "risky", "TOP424"),
    ("message.downconversion.enable", "false", "true", "risky", "risky", "risky", None),
    ("message.format.version", "2.8", "3.0", "risky", "risky", "risky", None),
    ("message.timestamp.after.max.ms", "10", "90", "notice", "risky", "risky", None),
    ("message.timestamp.before.max.ms", "10", "90", "notice", "risky", "risky", None),
    ("message.timestamp.difference.max.ms", "10", "90", "notice", "risky", "risky", None),
    ("message.timestamp.type", "CreateTime", "LogAppendTime", "risky", "risky", "risky", None),
    ("min.cleanable.dirty.ratio", "0.1", "0.9", "notice", "notice", "notice", None),
    ("min.compaction.lag.ms", "10", "90", "notice", "notice", "notice", None),
    ("min.insync.replicas", "1", "2", "risky", "risky", "risky", None),
    ("preallocate", "false", "true", "notice", "notice", "notice", None),
    ("remote.copy.lag.bytes", "10", "90", "notice", "notice", "notice", None),
    ("remote.copy.lag.ms", "10", "90", "notice", "notice", "notice", None),
    ("remote.log.copy.disable", "false", "true", "risky", "risky", "risky", None),
    ("remote.log.delete.on.disable", "false", "true", "risky", "risky", "risky", None),
    ("remote.storage.enable", "false", "true", "risky", "destructive", "risky", None),
    ("retention.bytes", "50", "90", "notice", "destructive", "destructive", "TOP413"),
    ("retention.ms", "50", "90", "notice", "destructive", "destructive", "TOP413"),
    ("segment.bytes", "50", "90", "notice", "notice", "risky", None),
    ("segment.index.bytes", "50", "90", "notice", "notice", "risky", None),
    ("segment.jitter.ms", "10", "90", "notice", "notice", "notice", None),
    ("segment.ms", "50", "90", "notice", "notice", "risky", None),
    ("unclean.leader.election.enable", "false", "true", "destructive", "notice", "destructive", None),
]
"""Config, a lower and a higher value, the risk of going up, of going down, from an unknown default up, and the code."""


@pytest.mark.parametrize(
    ("name", "low", "high", "up", "down", "unknown", "code"), BOTH_WAYS, ids=[row[0] for row in BOTH_WAYS]
)
def test_every_config_has_its_risk_in_both_directions(
    name: str, low: str, high: str, up: str, down: str, unknown: str, code: str | None
) -> None:
    codes = (code,) if code else ()
    codes_up = codes if code == "TOP414" else ()
    assert config_risk(name, low, high, None) == (Risk(up), codes_up)
    assert config_risk(name, None, high, low) == (Risk(up), codes_up)
    assert config_risk(name, high, low, None) == (Risk(down), codes)
    assert config_risk(name, high, None, low) == (Risk(down), codes)
    assert config_risk(name, None, high, None) == (Risk(unknown), codes)
    assert config_risk(name, low, None, low) == (Risk.NOTICE, ())


def test_the_table_names_every_config_that_can_be_planned() -> None:
    assert {row[0] for row in BOTH_WAYS} == set(TOPIC_CONFIGS) - THROTTLE_LISTS


@pytest.mark.parametrize(
    ("name", "before", "after", "risk", "codes"),
    [
        pytest.param("retention.bytes", "-1", "-5", "notice", (), id="two spellings of no limit"),
        pytest.param("retention.ms", "1000", "3999", "notice", (), id="retention up, less than four times"),
        pytest.param("retention.ms", "1000", "4000", "risky", (), id="retention up, four times"),
        pytest.param("retention.ms", "1000", "-1", "risky", (), id="retention to no limit"),
        pytest.param("retention.ms", "1000", "999", "destructive", ("TOP413",), id="retention down"),
        pytest.param("retention.ms", "-1", LARGEST, "destructive", ("TOP413",), id="retention from no limit"),
        pytest.param("retention.bytes", "-1", "5", "destructive", ("TOP413",), id="bytes from no limit"),
        pytest.param("retention.bytes", "0", "1", "risky", (), id="bytes from nothing"),
        pytest.param("local.retention.ms", "10", "4000", "notice", (), id="local retention up"),
        pytest.param("local.retention.ms", "10", "9", "risky", (), id="local retention down"),
        pytest.param("local.retention.bytes", "-2", "9", "risky", (), id="local retention from all to less"),
        pytest.param("local.retention.bytes", "9", "-2", "notice", (), id="local retention to all"),
        pytest.param("local.retention.bytes", "-1", "-2", "notice", (), id="local retention, two spellings of all"),
        pytest.param("cleanup.policy", "compact", "delete", "destructive", ("TOP414",), id="policy"),
        pytest.param("min.insync.replicas", "1", "2", "risky", (), id="min ISR up"),
        pytest.param("min.insync.replicas", "2", "1", "risky", (), id="min ISR down"),
        pytest.param("max.message.bytes", "9", "10", "notice", (), id="message size up"),
        pytest.param("max.message.bytes", "10", "9", "risky", ("TOP424",), id="message size down"),
        pytest.param("message.timestamp.after.max.ms", "10", "9", "risky", (), id="timestamp bound down"),
        pytest.param("message.timestamp.before.max.ms", "9", "10", "notice", (), id="timestamp bound up"),
        pytest.param("message.timestamp.difference.max.ms", "10", "9", "risky", (), id="old timestamp bound down"),
        pytest.param("delete.retention.ms", "10", "9", "risky", (), id="delete retention down"),
        pytest.param("segment.bytes", "100", "1000", "notice", (), id="segment up"),
        pytest.param("segment.bytes", "100", "25", "notice", (), id="segment to a quarter"),
        pytest.param("segment.ms", "100", "24", "risky", (), id="segment below a quarter"),
        pytest.param("segment.index.bytes", "100", "24", "risky", (), id="index below a quarter"),
        pytest.param("segment.jitter.ms", "100", "1", "notice", (), id="jitter is like all others"),
        pytest.param("flush.ms", "10", "9", "risky", (), id="flush"),
        pytest.param("message.timestamp.type", "CreateTime", "LogAppendTime", "risky", (), id="timestamp type"),
        pytest.param("unclean.leader.election.enable", "false", "true", "destructive", (), id="unclean election on"),
        pytest.param("unclean.leader.election.enable", "true", "false", "notice", (), id="unclean election off"),
        pytest.param("remote.storage.enable", "false", "true", "risky", (), id="tiered storage on"),
        pytest.param("remote.storage.enable", "true", "false", "destructive", (), id="tiered storage off"),
        pytest.param("message.downconversion.enable", "true", "false", "risky", (), id="down-conversion"),
        pytest.param("remote.log.copy.disable", "false", "true", "risky", (), id="remote log"),
        pytest.param("compression.type", "zstd", "gzip", "notice", (), id="compression"),
        pytest.param("some.new.config", "1", "2", "risky", (), id="a config that only a newer Kafka knows"),
    ],
)
def test_the_table_of_risk(name: str, before: str, after: str, risk: str, codes: tuple[str, ...]) -> None:
    assert config_risk(name, before, after, None) == (Risk(risk), codes)


@pytest.mark.parametrize(
    ("name", "before", "after", "default", "risk", "codes"),
    [
        pytest.param("retention.ms", None, "2000", "1000", "notice", (), id="up from the brokers' default"),
        pytest.param("retention.ms", None, "1000", "1000", "notice", (), id="an override equal to the default"),
        pytest.param("retention.ms", "2000", None, "1000", "destructive", ("TOP413",), id="down to the default"),
        pytest.param("retention.ms", "500", None, "1000", "notice", (), id="up to the brokers' default"),
        pytest.param("retention.ms", None, "2000", None, "destructive", ("TOP413",), id="from an unknown default"),
        pytest.param("retention.ms", "2000", None, None, "destructive", ("TOP413",), id="to an unknown default"),
        pytest.param("segment.ms", None, "2000", None, "risky", (), id="unknown counts as below a quarter"),
        pytest.param("max.message.bytes", None, "9", None, "risky", ("TOP424",), id="unknown size"),
        pytest.param("compression.type", None, "zstd", None, "notice", (), id="notice in every direction"),
        pytest.param("unclean.leader.election.enable", "true", None, None, "destructive", (), id="switch to unknown"),
        pytest.param("unclean.leader.election.enable", None, "false", None, "notice", (), id="switch off for sure"),
        pytest.param("remote.storage.enable", "true", None, None, "destructive", (), id="tiered storage to unknown"),
        pytest.param("retention.ms", "garbage", "5", None, "destructive", ("TOP413",), id="an unreadable live value"),
    ],
)
def test_a_missing_override_is_the_brokers_default_and_unknown_is_the_worse_direction(
    name: str, before: str | None, after: str | None, default: str | None, risk: str, codes: tuple[str, ...]
) -> None:
    assert config_risk(name, before, after, default) == (Risk(risk), codes)


def test_the_highest_risk_counts_with_all_codes() -> None:
    parts = [(Risk.NOTICE, ()), (Risk.DESTRUCTIVE, ("TOP413",)), (Risk.RISKY, ("TOP424", "TOP413"))]
    assert worst(parts) == (Risk.DESTRUCTIVE, ("TOP413", "TOP424"))
    assert worst([]) == (Risk.NOTICE, ())

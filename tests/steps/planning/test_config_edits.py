"""Overrides compared by what a broker reads in them, for each of the 36 configs."""

from collections.abc import Iterator

import pytest

from fakes.builders import desired_topic, live_topic
from topicops.model.plans.delta import TopicClass, desired_row, live_row
from topicops.model.specs.environment import Policy
from topicops.model.specs.topic_config import THROTTLE_LISTS, TOPIC_CONFIGS, TopicConfig
from topicops.steps.planning.blocking import ConfigEdits, config_edits
from topicops.steps.planning.diff import diff

REPORT, REMOVE = Policy(), Policy(unlisted_configs="remove")
COMPARED = [config for config in TOPIC_CONFIGS.values() if config.name not in THROTTLE_LISTS]
NOTHING = ConfigEdits(before={}, after={}, unlisted={})

WORDS = {
    "compression.type": ("zstd", "gzip"),
    "message.format.version": ("2.8-IV1", "3.0"),
    "message.timestamp.type": ("LogAppendTime", "CreateTime"),
}


def value_spellings_other(config: TopicConfig) -> tuple[str, list[str], list[str]]:
    """A canonical value, other spellings of it, and other values."""
    match config.type:
        case "INT" | "LONG":
            number = max(5, config.constraint.min)
            return str(number), list(spellings_of(number)), [str(number + 1), str(config.constraint.max)]
        case "DOUBLE":
            return "0.5", [" 0.5 ", ".5", "0.50", "5e-1", "0.5f", "0.5D", "0x1p-1"], ["0.0", "0.51", "1.0"]
        case "BOOLEAN":
            return "true", ["TRUE", " True ", "tRuE\n"], ["false"]
        case "LIST":
            alike = ["delete,compact", " delete , compact ", "compact,delete,compact", "delete\t,\ncompact"]
            return "compact,delete", alike, ["compact", "delete", ""]
        case "STRING":
            value, other = WORDS[config.name]
            return value, [f" {value}", f"{value}\n"], [other]


def spellings_of(number: int) -> Iterator[str]:
    yield from (f" {number} ", f"+{number}", f"00{number}", f"\t{number}\n")
    yield "".join(chr(0x0660 + int(digit)) for digit in str(number))  # Kafka reads the digits of every script


@pytest.mark.parametrize("config", COMPARED, ids=lambda config: config.name)
def test_another_spelling_of_the_same_value_is_no_difference(config: TopicConfig) -> None:
    value, spellings, _ = value_spellings_other(config)
    for text in (value, *spellings):
        assert config_edits({config.name: value}, {config.name: text}, REMOVE) == NOTHING
        wanted, live = desired_topic("a", configs={config.name: value}), live_topic("a", overrides={config.name: text})
        assert diff([desired_row(wanted)], [live_row(live)]).counts[TopicClass.SAME] == 1


@pytest.mark.parametrize("config", COMPARED, ids=lambda config: config.name)
def test_another_value_is_an_edit_in_canonical_form(config: TopicConfig) -> None:
    value, spellings, others = value_spellings_other(config)
    for other in others:
        found = config_edits({config.name: other}, {config.name: spellings[0]}, REPORT)
        assert (found.before, found.after, found.unlisted) == ({config.name: value}, {config.name: other}, {})


@pytest.mark.parametrize("config", COMPARED, ids=lambda config: config.name)
def test_no_override_is_another_thing_than_any_value_the_default_too(config: TopicConfig) -> None:
    name, default = config.name, config.default
    assert config_edits({name: default}, {}, REPORT).before == {name: None}
    assert config_edits({name: None}, {name: default}, REPORT).after == {name: None}
    assert config_edits({name: None}, {}, REPORT) == NOTHING


@pytest.mark.parametrize("name", ["retention.ms", "retention.bytes", "local.retention.ms", "compression.gzip.level"])
def test_minus_one_is_a_value_like_others(name: str) -> None:
    assert config_edits({name: "-1"}, {name: " -1"}, REPORT) == NOTHING
    assert config_edits({name: "-1"}, {name: "-01"}, REPORT) == NOTHING
    assert config_edits({name: "-1"}, {name: "1"}, REPORT).after == {name: "-1"}


def test_minus_nought_is_nought() -> None:
    assert config_edits({"min.cleanable.dirty.ratio": "0.0"}, {"min.cleanable.dirty.ratio": "-0.0"}, REPORT) == NOTHING


@pytest.mark.parametrize("policy", [REPORT, REMOVE], ids=["report", "remove"])
@pytest.mark.parametrize("name", sorted(THROTTLE_LISTS))
def test_the_throttle_lists_are_told_and_never_touched(name: str, policy: Policy) -> None:
    for live in ("*", "0:1,1:2"):
        assert config_edits({}, {name: live}, policy) == ConfigEdits(before={}, after={}, unlisted={name: live})
        assert config_edits({name: "0:1"}, {name: live}, policy) == NOTHING
    assert config_edits({}, {name: ""}, policy) == NOTHING, "an empty list throttles nothing"


def test_the_order_of_a_throttle_list_makes_another_one() -> None:
    name = min(THROTTLE_LISTS)
    wanted, live = desired_topic("a", configs={name: "0:1,1:2"}), live_topic("a", overrides={name: "1:2,0:1"})
    assert diff([desired_row(wanted)], [live_row(live)]).counts[TopicClass.DIFFERENT] == 1


def test_what_a_broker_would_not_read_is_compared_as_text() -> None:
    overrides = {"retention.ms": "soon", "some.newer.config": " 1"}
    assert config_edits({"retention.ms": "5"}, overrides, REPORT) == ConfigEdits(
        before={"retention.ms": "soon"}, after={"retention.ms": "5"}, unlisted={"some.newer.config": " 1"}
    )
    removed = config_edits({"retention.ms": "5"}, overrides, REMOVE)
    assert removed.after == {"retention.ms": "5", "some.newer.config": None}


def test_edits_come_by_name_and_hold_both_sides() -> None:
    wanted = {"segment.ms": "5", "flush.ms": "7", "retention.ms": None}
    found = config_edits(wanted, {"retention.ms": "9", "segment.ms": "6"}, REPORT)
    assert list(found.after.items()) == [("flush.ms", "7"), ("retention.ms", None), ("segment.ms", "5")]
    assert list(found.before.items()) == [("flush.ms", None), ("retention.ms", "9"), ("segment.ms", "6")]


@pytest.mark.parametrize(
    ("alterable", "after", "unlisted"),
    [
        pytest.param(None, {"flush.ms": None, "segment.ms": None}, {}, id="all"),
        pytest.param(("flush.ms",), {"flush.ms": None}, {"segment.ms": " 6"}, id="one"),
        pytest.param((), {}, {"flush.ms": "7", "segment.ms": " 6"}, id="none"),
    ],
)
def test_only_alterable_configs_are_removed_the_others_are_told_as_stored(
    alterable: tuple[str, ...] | None, after: dict[str, None], unlisted: dict[str, str]
) -> None:
    policy = Policy(unlisted_configs="remove", alterable_configs=alterable)
    found = config_edits({}, {"segment.ms": " 6", "flush.ms": "7"}, policy)
    assert (found.after, found.unlisted) == (after, unlisted)

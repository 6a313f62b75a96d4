"""The JSON Schemas take every file that `validate` takes, and say of each config what it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from jsonschema import Draft202012Validator

from fixtures.schemas.spec_files import KINDS, schema_of
from fixtures.spec_folder import LOCAL, configs, topic
from topicops.model.release import FIRST_REQUESTS
from topicops.model.specs.config_checks import check_written
from topicops.model.specs.topic_config import (
    TOPIC_CONFIGS,
    ConfigValueError,
    TopicConfig,
    canonical_written,
    configs_of,
)

ROOT = Path(__file__).parents[4]
TOPICS = ROOT / "topics"
CORPUS = json.loads((ROOT / "tests" / "data" / "bad-inputs.json").read_text(encoding="utf-8"))
ACCEPTED = [case for case in CORPUS["cases"] if not any(found["severity"] == "error" for found in case["expect"])]


class CoreLoader(yaml.CSafeLoader):
    """Types plain scalars as YAML 1.2 does, which is how editors read a file."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


for tag, pattern, first in (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^(?:[-+]?(?:0|[1-9][0-9]*))$", list("-+0123456789")),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
):
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)


@cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(schema_of(kind))


def complaints(file: str, text: str) -> list[str]:
    return [
        error.message for error in validator(kind_of(file)).iter_errors(as_json(yaml.load(text, Loader=CoreLoader)))
    ]


def kind_of(file: str) -> str:
    folder, name = file.split("/")[-2:]
    if folder == "environments":
        return "exceptions" if name.endswith(".exceptions.yaml") else "environment"
    return "profile" if folder == "profiles" else "topic"


def as_json(value: object) -> object:
    """Keys are text in JSON."""
    match value:
        case dict():
            return {str(key): as_json(below) for key, below in value.items()}
        case list():
            return [as_json(item) for item in value]
        case _:
            return value


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_one_of_2020_12(kind: str) -> None:
    Draft202012Validator.check_schema(schema_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_each_pattern_has_a_sentence_for_editors(kind: str) -> None:
    def below(value: object) -> Iterator[Mapping[str, object]]:
        if isinstance(value, dict):
            yield value
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from below(each)

    bare = [found for found in below(schema_of(kind)) if "pattern" in found and "patternErrorMessage" not in found]
    assert bare == []


@pytest.mark.parametrize("file", sorted(TOPICS.rglob("*.yaml")), ids=lambda file: file.name)
def test_the_examples_are_taken(file: Path) -> None:
    assert complaints(str(file), file.read_text(encoding="utf-8")) == []


def accepted_files() -> Iterator[Any]:
    for case in ACCEPTED:
        files: Mapping[str, Any] = case["files"]
        for name, entry in files.items():
            if entry is not None and "text" in entry and name.endswith(".yaml"):
                yield pytest.param(name, entry["text"], id=f"{case['id']}-{Path(name).name}")


@pytest.mark.parametrize(("file", "text"), list(accepted_files()))
def test_a_file_that_validate_takes_is_taken(file: str, text: str) -> None:
    assert complaints(file, text) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("web/a.yaml", topic("a", "spec: {replicas: 3}\n"), id="an unknown field"),
        pytest.param("web/a.yaml", topic("a", "spec: {partitions: 0}\n"), id="a number out of range"),
        pytest.param("web/a.yaml", topic("a", "spec: {partitions: '010'}\n"), id="an ambiguous number"),
        pytest.param("web/a.yaml", topic("a", "spec: {keyed: yes}\n"), id="a word of YAML 1.1"),
        pytest.param("web/a.yaml", topic("a", "spec: {placement: round}\n"), id="a word that is none"),
        pytest.param("web/a.yaml", topic("a", ""), id="no spec"),
        pytest.param("web/a.yaml", topic("a", "lifecycle: {state: absent, reason: r}\nspec: {}\n"), id="a tombstone"),
        pytest.param("web/a.yaml", topic("a", "lifecycle: {state: absent}\n"), id="a tombstone without a reason"),
        pytest.param("web/a.yaml", topic("a b"), id="a name"),
        pytest.param("web/a.yaml", configs("retention.mss: 1"), id="an unknown config"),
        pytest.param("web/a.yaml", configs("retention.ms: 7 days"), id="a unit"),
        pytest.param("web/a.yaml", configs("cleanup.policy: Compact"), id="a list"),
        pytest.param("web/a.yaml", configs("segment.bytes: 13"), id="a config out of range"),
        pytest.param("web/a.yaml", topic("a", "spec: {assignment: {0: [1, 1]}}\n"), id="a broker twice"),
        pytest.param("environments/local.yaml", LOCAL.replace("sandbox", "test"), id="a class of environments"),
        pytest.param("environments/local.yaml", LOCAL + "  verify: {isr: 30}\n", id="a duration without a unit"),
    ],
)
def test_what_one_file_alone_shows_to_be_wrong_is_refused(file: str, text: str) -> None:
    assert complaints(file, text) != []


def shown_configs(kind: str) -> Mapping[str, Any]:
    definitions: Any = schema_of(kind)["$defs"]
    properties: Mapping[str, Any] = definitions["configs"]["properties"]
    return properties


@pytest.mark.parametrize("kind", ["topic", "profile", "environment"])
def test_every_config_has_its_type_range_default_and_unit(kind: str) -> None:
    shown = shown_configs(kind)

    assert shown.keys() == TOPIC_CONFIGS.keys()
    for name, config in TOPIC_CONFIGS.items():
        assert (shown[name]["x-type"], shown[name]["x-valid"]) == (config.type, config.valid)
        assert canonical_written(name, str(shown[name]["default"])) == config.default
        assert shown[name].get("x-unit") == config.unit
        assert shown[name]["description"].endswith(".")


SPELLINGS = [
    "-3", "-2", "-1", "0", "1", "13", "14", "9", "17", "18", "22", "23", "2147483647", "2147483648", "0.5", "1.5",
    "true", "false", "TRUE", "yes", "7d", "1GiB", "1h", "5GB", " 1 ", "+1", "007", "1e3", "compact", "delete",
    "compact,delete", "delete,", "producer", "gzip", "GZIP", "CreateTime", "*", "0:1", "0:1,1:2", "NaN", "",
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(TOPIC_CONFIGS))
def test_a_config_takes_what_brokers_of_any_release_take_typed_or_quoted(name: str) -> None:
    """The schema may take more than a broker, never less."""
    of_one = Draft202012Validator(shown_configs("topic")[name])
    refused = [
        text
        for text in SPELLINGS
        if is_taken(name, text) and not (of_one.is_valid(text) and of_one.is_valid(typed(text)))
    ]

    assert refused == []


def typed(text: str) -> object:
    """Return a number or a truth value where YAML 1.2 has one, which is where JSON has one."""
    try:
        return json.loads(text, parse_constant=str)
    except json.JSONDecodeError:
        return text


def is_taken(name: str, text: str) -> bool:
    return any(is_taken_by(config, text) for release in FIRST_REQUESTS if (config := configs_of(release).get(name)))


def is_taken_by(config: TopicConfig, text: str) -> bool:
    try:
        check_written(config, text)
    except ConfigValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("segment.bytes", "Valid: [14,...]; since Kafka 4.1: [1048576,...]."),
        ("compression.gzip.level", "Since Kafka 3.8."),
        ("message.downconversion.enable", "Since Kafka 2.0. Gone since Kafka 4.0."),
        ("retention.ms", "Valid: any 64-bit integer; since Kafka 2.2: [-1,...]."),
    ],
)
def test_a_config_that_differs_by_release_says_so(name: str, words: str) -> None:
    assert shown_configs("topic")[name]["description"].endswith(f". {words}")

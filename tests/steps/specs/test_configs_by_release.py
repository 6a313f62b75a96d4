"""Topic configs by release: names, defaults and the edges of each range, against the LogConfig of each release.

``tests/data/topic-configs-by-release.json`` has what the classes say; it was not made from our table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fixtures.config_edges import codes_of, edge_values
from topicops.model.release import NEWEST, OLDEST, ONE_MESSAGE_FORMAT, Release
from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.topic_config import THROTTLE_LISTS, TOPIC_CONFIGS, configs_of

DATA: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "topic-configs-by-release.json").read_text(encoding="utf-8")
)
CLASSES: Mapping[str, Any] = {
    config["name"]: config for config in DATA["configs"] if config["name"] != "internal.segment.bytes"
}
MESSAGE_FORMAT = "message.format.version"
RANGE = re.compile(r"\[(-?\d+),\.\.\.(?:,(-?\d+))?](?: or (-?\d+))?")
BITS = {"INT": 32, "LONG": 64}


def release_of(text: str) -> Release:
    found = Release.parse(text)
    assert found is not None
    return found


RELEASES = [release_of(text) for text in DATA["asked"]]


def form_of(name: str, release: Release) -> Any:
    """What the class of the release says of the config; None: the release has no such config."""
    for form in CLASSES[name]["ranges"]:
        if release_of(form["from"]) <= release and (form["to"] is None or release <= release_of(form["to"])):
            return form
    return None


def test_the_table_begins_with_the_oldest_release_and_ends_with_the_newest() -> None:
    assert (RELEASES[0], RELEASES[-1], len(RELEASES)) == (OLDEST, NEWEST, 26)
    assert TOPIC_CONFIGS.keys() == CLASSES.keys()


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_release_has_the_configs_defaults_and_broker_settings_of_its_class(release: Release) -> None:
    forms = {name: form for name in CLASSES if (form := form_of(name, release)) is not None}
    configs = configs_of(release)

    assert configs.keys() == forms.keys()
    for name, form in forms.items():
        config = configs[name]
        if form["default"].startswith("this release"):
            assert Release.parse(config.default) == release
        else:
            assert config.default == form["default"], name
        assert config.form.broker_synonyms == tuple(setting for setting, _ in form["broker"]), name
        assert config_problem(name, config.default, release) == "", name


def is_taken(name: str, text: str, valid: str | None, release: Release) -> bool:
    """Whether a value is in the range that the class prints; where it checks none, whether a replica opens its log."""
    config = TOPIC_CONFIGS[name]
    if name == MESSAGE_FORMAT:
        return any(text == known and since <= release for known, since in config.names.items())
    if name == "message.timestamp.type":
        return text in ("CreateTime", "LogAppendTime")
    if config.type in BITS:
        limit = 1 << BITS[config.type] - 1
        found = RANGE.fullmatch(valid or f"[{-limit},...]")
        assert found is not None, valid
        least, most, also = (None if end is None else int(end) for end in found.groups())
        number = int(text) if re.fullmatch(r"-?\d+", text) else limit
        return -limit <= number < limit and (
            number == also or (least or 0) <= number <= (limit if most is None else most)
        )
    if config.type == "BOOLEAN":
        return text.lower() in ("true", "false")
    if config.type == "DOUBLE":
        return text in ("0", "0.5", "1", "NaN")
    words = (valid or "").strip("[]").split(", ")
    return all(word.strip() in words for word in text.split(",")) or (config.type == "LIST" and not text)


def expected_codes(release: Release) -> Iterator[tuple[tuple[str, str], str]]:
    for name, config in TOPIC_CONFIGS.items():
        form = form_of(name, release)
        for text in edge_values(config):
            if name == MESSAGE_FORMAT and text not in (*config.names, "x", ""):
                continue  # names with a patch number: judged below
            if name in THROTTLE_LISTS:
                code = "TOP313"
            elif form is None or (name == MESSAGE_FORMAT and release >= ONE_MESSAGE_FORMAT):
                code = "TOP314"
            else:
                code = "" if is_taken(name, text, form["valid"], release) else "TOP306"
            yield (name, text), code


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_the_edges_of_each_range_are_judged_as_the_class_of_the_release_judges_them(release: Release) -> None:
    expected = dict(expected_codes(release))

    assert len(expected) > 200
    assert codes_of(release, list(expected)) == expected


@pytest.mark.parametrize(
    ("release", "text", "is_known"),
    [
        ("1.0", "0.8.2", True),
        ("1.0", "0.10.2", True),
        ("1.0", "0.10.2.1", True),
        ("1.0", "0.10", False),
        ("1.1", "1.1.1", True),
        ("1.1", "2.5", False),
        ("2.4", "2.5-IV0", False),
        ("2.5", "2.5-IV0", True),
        ("2.5", "2.5-IV1", False),
        ("2.8", "2.8-IV1", True),
        ("2.8", "3.0", False),
    ],
)
def test_a_message_format_is_a_release_up_to_the_brokers_own(release: str, text: str, is_known: bool) -> None:
    """Before 2.1 brokers take any text, and then no replica can open its log."""
    found = codes_of(release_of(release), [(MESSAGE_FORMAT, text)])

    assert found == {(MESSAGE_FORMAT, text): "" if is_known else "TOP306"}


@pytest.mark.parametrize(
    ("written", "counted"),
    [("0.9", OLDEST), ("1.0", OLDEST), ("4.10", NEWEST), ("99.9", NEWEST), ("2.4", Release(2, 4))],
)
def test_a_release_outside_the_table_is_taken_for_its_nearest(written: str, counted: Release) -> None:
    table = configs_of(release_of(written))

    assert {config.release for config in table.values()} == {counted}
    assert table == configs_of(counted)

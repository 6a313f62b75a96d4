"""What `topicops schema` prints, and whether the files of the package are current."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from topicops.cli import run
from topicops.cli.files.schema import render_schema, schema_kinds

KINDS = schema_kinds()


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_of_the_package_is_current(kind: str) -> None:
    """Renew it: topicops schema KIND > plugins/topicops/schema/KIND.v1.json."""
    packaged = resources.files("topicops").joinpath("schema", f"{kind}.v1.json").read_text(encoding="utf-8")

    assert packaged == render_schema(kind) + "\n"


def test_the_package_holds_no_other_schema() -> None:
    names = {file.name for file in resources.files("topicops").joinpath("schema").iterdir()}

    assert {name for name in names if name.endswith(".json")} == {f"{kind}.v1.json" for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_printed(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", kind]) == 0

    assert json.loads(capsys.readouterr().out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_without_a_kind_their_places_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0

    listed = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert list(listed) == list(KINDS)
    assert all(Path(path).is_file() for path in listed.values())


def test_a_kind_that_is_none_is_one_line_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "topics"]) == 1

    message = (
        "topicops: there is no kind 'topics'; the kinds are topic, profile, environment, exceptions, owners, plan\n"
    )
    assert tuple(capsys.readouterr()) == ("", message)

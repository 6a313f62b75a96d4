"""What `topicops schema` prints, and whether the files of the package are current."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from topicops.cli import run
from topicops.features.files.schemas.commands import output_files, rendered, spec_files

FILES = {**spec_files(), **output_files()}


@pytest.mark.parametrize("kind", FILES)
def test_the_schema_of_the_package_is_current(kind: str) -> None:
    """Renew it: topicops schema KIND > FILE, as `topicops schema` names the file."""
    packaged = resources.files("topicops").joinpath("made_schemas", FILES[kind]).read_text(encoding="utf-8")

    assert packaged == rendered(kind) + "\n"


def test_the_package_holds_no_other_schema() -> None:
    folder = Path(str(resources.files("topicops").joinpath("made_schemas")))

    assert {str(path.relative_to(folder)) for path in folder.rglob("*.json")} == set(FILES.values())


@pytest.mark.parametrize("kind", FILES)
def test_a_schema_is_printed(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", kind]) == 0

    assert json.loads(capsys.readouterr().out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_without_a_kind_their_places_are_listed_in_two_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0

    written, outputs = (
        capsys.readouterr().out.removeprefix("Files that people write:\n").split("Outputs for programs:\n")
    )
    for group, files in ((written, spec_files()), (outputs, output_files())):
        listed = dict(line.strip().split(": ", 1) for line in group.splitlines())
        assert list(listed) == list(files)
        assert all(Path(path).is_file() for path in listed.values())


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        pytest.param("topcs", "did you mean topics?", id="a near one"),
        pytest.param("audit-logs", "did you mean audit-lines?", id="a near output"),
        pytest.param("zzz", "`topicops schema` lists the kinds", id="like none"),
    ],
)
def test_a_kind_that_is_none_is_one_line(kind: str, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", kind]) == 1
    assert tuple(capsys.readouterr()) == ("", f"topicops: there is no kind {kind!r}; {advice}\n")

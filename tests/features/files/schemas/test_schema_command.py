"""What `topicops schema` prints, and whether the files of the package are current."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from fixtures.made_parts import schemas
from topicops.cli import run
from topicops.features.files.schemas.commands import output_files, spec_files

FILES = {**spec_files(), **output_files()}


def test_the_schemas_of_the_package_are_current() -> None:
    """Renew them: ``make pages``."""
    folder = Path(str(resources.files("topicops").joinpath("made_schemas")))

    assert {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in FILES.values()} == schemas()


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

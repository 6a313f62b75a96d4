"""What `topicops code` prints."""

from __future__ import annotations

import pytest

from topicops.cli import run
from topicops.model.codes import Code


@pytest.mark.parametrize("written", ["TOP204", "top204", "204", " 204 "])
def test_a_code_is_found_as_people_type_it(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["code", written]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "TOP204: ambiguous scalar"
    assert [line.split(":")[0].strip() for line in lines[2:]] == ["Cause", "Example", "Fix"]


@pytest.mark.parametrize(("written", "page"), [("V08", "checks.md"), ("q13", "quality.md#q13")])
def test_checks_and_quality_rules_are_explained_and_lead_to_their_page(
    written: str, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["code", written]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{written.upper()}: ")
    assert [line.split(":")[0].strip() for line in lines[2:]] == ["Cause", "Fix", "More"]
    assert lines[-1].endswith(f"docs/reference/{page}")


def test_all_codes_are_listed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["code"]) == 0

    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(Code)


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("TOP299", "TOP301"),
        ("999", "TOP814"),
        ("TOPP204", "TOP204"),
        ("V18", "V"),
        ("\x1b[31m", ""),
        ("\uff19" * 20, "TOP"),
    ],
)
def test_a_code_that_is_none_names_the_nearest(written: str, nearest: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["code", written]) == 1

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"the nearest is {nearest}" in err
    assert err.isprintable() is False
    assert err[:-1].isprintable()

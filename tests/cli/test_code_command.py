"""What `topicops code` prints."""

from __future__ import annotations

import pytest

from topicops.cli import run
from topicops.model.specs.codes import CODES


@pytest.mark.parametrize("written", ["TOP204", "top204", "204", " 204 "])
def test_a_code_is_found_as_people_type_it(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["code", written]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "TOP204: ambiguous scalar"
    assert [line.split(":")[0].strip() for line in lines[2:]] == ["Cause", "Example", "Fix"]


def test_a_reserved_code_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["code", "TOP212"]) == 0

    assert "Reserved: nothing produces it yet." in capsys.readouterr().out


def test_all_codes_are_listed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["code"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(CODES)
    assert [line.split()[0] for line in lines if line.endswith(" (reserved)")] == [
        code for code, entry in CODES.items() if entry.is_reserved
    ]


@pytest.mark.parametrize(
    ("written", "nearest"),
    [("TOP299", "TOP301"), ("999", "TOP812"), ("TOPP204", "TOP204"), ("\x1b[31m", "TOP"), ("\uff19" * 20, "TOP")],
)
def test_a_code_that_is_none_names_the_nearest(written: str, nearest: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["code", written]) == 1

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"the nearest is {nearest}" in err
    assert err.isprintable() is False
    assert err[:-1].isprintable()


@pytest.mark.parametrize(("written", "page"), [("V08", "checks.md"), ("q13", "quality.md")])
def test_the_other_ids_of_reports_lead_to_their_page(
    written: str, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["code", written]) == 1
    assert f"docs/reference/{page}" in capsys.readouterr().err

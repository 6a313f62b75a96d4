"""How texts look on a terminal, and that they are unchanged elsewhere."""

from __future__ import annotations

import io
import re

import pytest

from topicops.cli.terminal import folded, for_terminal, wants_colour

PLAN = """\
Plan for environment local, cluster x:

  + topic.a will be created  (topics/web/a.yaml:4, team-web)
  - topic.b would be deleted, but is held  (topics/web/b.yaml:4, team-web)
      risk: destructive
      held: 1 delete, 0 allowed
  ! topic.c is blocked  (topics/web/c.yaml:4, team-web)
      TOP401: fewer partitions
      way out: copy the live value
  ! 41 topics are blocked: d1, d2 and 39 more

Plan: 1 to create, 0 to expand, 0 to configure, 1 to delete; 1 blocked, 0 unmanaged.
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("stream", "variables", "wanted"),
    [
        (Terminal(), {}, True),
        (io.StringIO(), {}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals_and_for_those_who_ask(
    stream: io.StringIO, variables: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(stream) is wanted


def test_elsewhere_a_text_is_unchanged() -> None:
    assert for_terminal(PLAN + "x" * 500, io.StringIO()) == PLAN + "x" * 500


def test_without_its_colour_the_text_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = for_terminal(PLAN, Terminal())
    assert re.sub(r"\x1b\[\d*m", "", shown) == PLAN
    assert "\x1b[32m  + topic.a will be created" in shown
    assert "\x1b[31m  - topic.b would be deleted" in shown
    assert "\x1b[31m  ! topic.c is blocked" in shown
    assert "\x1b[31m  ! 41 topics are blocked" in shown


def test_a_wide_line_is_folded_at_blanks_and_loses_no_word() -> None:
    line = "      held: " + "a limit of the environment " * 10
    parts = folded(line.rstrip(), 60)
    assert all(len(part) <= 60 for part in parts)
    assert " ".join(" ".join(parts).split()) == " ".join(line.split())
    assert all(part.startswith(" " * 10) for part in parts[1:])


@pytest.mark.parametrize("line", ["  7 | " + "x y " * 50, " " * 90 + "^^^", "x" * 200])
def test_source_lines_carets_and_long_words_are_not_folded(line: str) -> None:
    assert folded(line, 80) == [line]

"""Tombstones made from specs: what is said of the topic stays, what it shall be goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.spec_folder import write
from topicops.cli import run

SPEC = """\
# yaml-language-server: $schema=../topic.v1.json
apiVersion: topicops/v1
kind: Topic
metadata:
  name: web.clicks    # as the file
  owner: team-web
  # who reads it: the shop
  labels: {tier: "1"}

# Measured in March.
spec:
  # as many as there are consumers
  partitions: 12
  configs:
    retention.ms: 7d
    # a day

# the end
"""
HEAD = SPEC.partition("\n# Measured")[0]


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "topics", {"web/web.clicks.yaml": SPEC})
    return tmp_path / "topics/web/web.clicks.yaml"


def retire(*arguments: str) -> int:
    return run(["retire", "web.clicks", *arguments])


def test_the_spec_goes_and_all_above_stays(file: Path) -> None:
    assert retire("--reason", "Replaced by web.events: all of it.") == 0

    assert file.read_text() == (
        f"{HEAD}# Measured in March.\n# the end\n"
        'lifecycle:\n  state: absent\n  reason: "Replaced by web.events: all of it."\n'
    )
    assert run(["validate"]) == 0


def test_a_time_is_written_in_utc(file: Path) -> None:
    assert retire("--reason", "Over.", "--not-before", "2030-01-31T14:00:00+02:00") == 0

    assert file.read_text().endswith("\n  reason: Over.\n  notBefore: 2030-01-31T12:00:00Z\n")
    assert run(["validate"]) == 0
    assert run(["fmt", "--check", "topics/web/web.clicks.yaml"]) == 0


def test_a_pause_gives_way(file: Path) -> None:
    file.write_text(SPEC.replace("spec:", "lifecycle: {state: paused, reason: r, until: 2999-01-01T00:00:00Z}\nspec:"))

    assert retire("--reason", "Over.") == 0

    assert file.read_text().count("lifecycle:") == 1
    assert "paused" not in file.read_text()


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        pytest.param(SPEC, ["--reason", " "], "--reason", id="no reason"),
        pytest.param(SPEC, ["--reason", "r", "--not-before", "2030-01-31"], "--not-before", id="no zone"),
        pytest.param(SPEC, ["--reason", "r", "--not-before", "soon"], "--not-before", id="no time"),
        pytest.param(
            "{apiVersion: topicops/v1, kind: Topic, metadata: {name: web.clicks, owner: o}, spec: {}}\n",
            ["--reason", "r"],
            "one field a line",
            id="all in braces",
        ),
        pytest.param(
            SPEC.partition("spec:")[0] + "lifecycle:\n  state: absent\n  reason: r\n",
            ["--reason", "r"],
            "already",
            id="a tombstone",
        ),
        pytest.param("kind: [", ["--reason", "r"], "cannot be read", id="a broken file"),
    ],
)
def test_what_cannot_be_done_leaves_the_file_alone(
    text: str, arguments: list[str], said: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)

    assert retire(*arguments) == 1

    assert said in capsys.readouterr().err
    assert file.read_text() == text


def test_a_topic_that_no_file_describes_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["retire", "web.visits", "--reason", "r"]) == 1
    assert "web.visits: no file describes it" in capsys.readouterr().err


def test_a_topic_that_is_nearly_called_so_is_offered(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nearly = f"{file.stem}z"
    assert run(["retire", nearly, "--reason", "Over."]) == 1
    assert f"{nearly}: no file describes it; did you mean {file.stem}?" in capsys.readouterr().err


def test_several_names_and_globs_are_all_retired_and_tombstones_are_passed_over(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("web.views", "web.over", "shop.orders"):
        write(file.parents[1], {f"{name.partition('.')[0]}/{name}.yaml": SPEC.replace("web.clicks", name)})
    assert run(["retire", "web.over", "--reason", "Over."]) == 0
    capsys.readouterr()

    assert run(["retire", "shop.orders", "web.*", "--reason", "All of it."]) == 0

    names = ("shop/shop.orders", "web/web.clicks", "web/web.views")
    assert capsys.readouterr().out.splitlines() == [
        f"topics/{name}.yaml is a tombstone; the next plan deletes {name.partition('/')[2]}" for name in names
    ]
    assert run(["validate"]) == 0


@pytest.mark.parametrize(
    ("topics", "said"),
    [
        pytest.param(["web.*", "no.*"], "no.*: no file describes it", id="a glob of nothing"),
        pytest.param(["web.*"], "no block can be taken out", id="one of them in braces"),
    ],
)
def test_all_are_retired_or_none(file: Path, capsys: pytest.CaptureFixture[str], topics: list[str], said: str) -> None:
    braces = (
        "apiVersion: topicops/v1\nkind: Topic\nmetadata: {name: web.views, owner: team-web}\nspec: {partitions: 3}\n"
    )
    write(file.parents[1], {"web/web.views.yaml": f"{{{', '.join(braces.splitlines())}}}"})
    assert run(["retire", *topics, "--reason", "Over."]) == 1
    assert said in capsys.readouterr().err
    assert file.read_text() == SPEC

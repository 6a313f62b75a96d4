"""New specs: valid when they are written, or not written at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, topic, write
from topicops.cli import run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "topics", {"profiles/kept.yaml": HEAD.format(kind="Profile", name="kept") + "  partitions: 6\n"})
    return tmp_path / "topics"


def new(*arguments: str) -> int:
    return run(["new", *arguments, "--owner", "team-web"])


def test_a_name_and_an_owner_are_enough(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new("web.clicks") == 0

    assert capsys.readouterr().out == "Wrote topics/web/web.clicks.yaml\n"
    assert (folder / "web/web.clicks.yaml").read_text() == (
        "apiVersion: topicops/v1\nkind: Topic\nmetadata:\n  name: web.clicks\n  owner: team-web\nspec: {}\n"
    )


def test_everything_that_is_said_is_written_and_valid(folder: Path) -> None:
    arguments = ["--domain", "frontend", "--description", "Clicks: all # of them", "--label", "tier=1"]
    arguments += ["--only-in", "local", "--profile", "kept", "--partitions", "12", "--replication-factor", "2"]
    arguments += ["--not-keyed", "--config", "retention.ms=7d", "--config", "segment.ms=null"]
    arguments += ["--config", "max.message.bytes=2048", "--config", "preallocate=true"]

    assert new("clicks", *arguments) == 0

    assert (folder / "frontend/clicks.yaml").read_text() == (
        "apiVersion: topicops/v1\n"
        "kind: Topic\n"
        "metadata:\n"
        "  name: clicks\n"
        "  owner: team-web\n"
        '  description: "Clicks: all # of them"\n'
        "  labels:\n"
        '    tier: "1"\n'
        "  environments: [local]\n"
        "spec:\n"
        "  profile: kept\n"
        "  partitions: 12\n"
        "  replicationFactor: 2\n"
        "  keyed: false\n"
        "  configs:\n"
        "    retention.ms: 7d\n"
        "    segment.ms: null\n"
        "    max.message.bytes: 2KiB\n"
        "    preallocate: true\n"
    )
    assert run(["validate"]) == 0
    assert run(["fmt", "--check", "topics/frontend/clicks.yaml"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["web.clicks", "--profile", "keptt"], "TOP318", id="an unknown profile"),
        pytest.param(["web.clicks", "--partitions", "0"], "TOP205", id="no partitions"),
        pytest.param(["web.clicks", "--partitions", "100"], "TOP320", id="over the environment's limit"),
        pytest.param(["web.clicks", "--config", "retention.hours=1"], "TOP305", id="an unknown config"),
        pytest.param(["web.clicks", "--config", "retention.ms=soon"], "TOP306", id="a bad value"),
        pytest.param(["web.clicks", "--config", "retention.ms"], "NAME=VALUE", id="a config without a value"),
        pytest.param(["web.clicks", "--domain", "profiles"], "--domain", id="a folder of other files"),
        pytest.param(["web.clicks", "--domain", "../web"], "--domain", id="a folder elsewhere"),
        pytest.param(["__offsets"], "TOP210", id="a protected name"),
        pytest.param(["../clicks"], "TOP207", id="a name that leads elsewhere"),
        pytest.param(["we b.clicks"], "TOP207", id="a name that is illegal before its first dot"),
        pytest.param([".."], "TOP209", id="a name that is a folder"),
        pytest.param(["web_there"], "TOP302", id="a name that clashes with a later file"),
    ],
)
def test_what_the_rules_refuse_is_not_written(
    arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"zoo/web.there.yaml": topic("web.there")})
    before = sorted(folder.rglob("*"))

    assert new(*arguments) == 1

    assert said in capsys.readouterr().err
    assert sorted(folder.rglob("*")) == before


def test_a_place_in_a_file_that_was_not_written_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert new("web.clicks", "--partitions", "0") == 1

    first, *rest = capsys.readouterr().err.splitlines()
    assert first.startswith("No file was written; ")
    assert any("topics/web/web.clicks.yaml:" in line for line in rest)


def test_a_file_that_is_there_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "web").mkdir()
    (folder / "web/clicks.yaml").write_text("no spec at all")

    assert new("clicks", "--domain", "web") == 1

    assert "topics/web/clicks.yaml" in capsys.readouterr().err
    assert (folder / "web/clicks.yaml").read_text() == "no spec at all"


def test_problems_of_other_files_do_not_stand_in_the_way(folder: Path) -> None:
    write(folder, {"zoo/broken.yaml": "kind: ["})

    assert new("web.clicks") == 0


def test_a_file_that_is_there_is_named_before_any_other_problem(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new("web.clicks") == 0
    capsys.readouterr()

    assert new("web.clicks", "--partitions", "-1", "--config", "retention.mss=7d") == 1

    assert capsys.readouterr().err == (
        "topicops: topics/web/web.clicks.yaml: there is such a file already; it stays, and nothing was written\n"
    )


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ([], "--partitions and --replication-factor"),
        (["--partitions", "3"], "--replication-factor"),
        (["--replication-factor", "3"], "--partitions"),
        (["--profile", "kept"], "--replication-factor"),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
def test_missing_numbers_are_asked_for_by_their_options(
    folder: Path, given: list[str], options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    local = folder / "environments" / "local.yaml"
    text = local.read_text(encoding="utf-8")
    local.write_text(text.replace("defaults: {partitions: 3, replicationFactor: 3}", "defaults: {}"), encoding="utf-8")

    assert new("web.clicks", *given) == 1

    assert capsys.readouterr().err.startswith(f"topicops: give {options}: neither a profile")
    assert not (folder / "web").exists()

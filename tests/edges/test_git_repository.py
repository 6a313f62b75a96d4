"""Which commit the files are, by a real git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from topicops.edges.git_repository import commit_of


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    """A committed folder of one spec."""
    folder = tmp_path / "topics"
    (folder / "web").mkdir(parents=True)
    (folder / "web" / "clicks.yaml").write_text("a: b\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Describe clicks")
    return folder


def test_clean_files_have_the_commit_of_the_work_tree(topics: Path) -> None:
    assert commit_of(topics) == git(topics, "rev-parse", "HEAD")


def test_a_change_elsewhere_does_not_matter(topics: Path) -> None:
    (topics.parent / "notes.txt").write_text("x")

    assert commit_of(topics) == git(topics, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: (folder / "web" / "clicks.yaml").write_text("a: c\n"), id="changed"),
        pytest.param(lambda folder: (folder / "web" / "new.yaml").write_text("a: c\n"), id="new"),
        pytest.param(lambda folder: (folder / "web" / "clicks.yaml").unlink(), id="removed"),
        pytest.param(lambda folder: git_ignored(folder), id="ignored by git"),
        pytest.param(lambda folder: staged(folder), id="staged"),
    ],
)
def test_files_that_differ_from_the_commit_have_none(topics: Path, change: object) -> None:
    assert callable(change)
    change(topics)

    assert commit_of(topics) is None


def git_ignored(folder: Path) -> None:
    (folder.parent / ".git" / "info" / "exclude").write_text("hidden.yaml\n")
    (folder / "web" / "hidden.yaml").write_text("a: c\n")


def staged(folder: Path) -> None:
    (folder / "web" / "clicks.yaml").write_text("a: c\n")
    git(folder, "add", ".")


def test_files_outside_git_have_no_commit(tmp_path: Path) -> None:
    assert commit_of(tmp_path) is None


def test_a_repository_without_commit_has_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")

    assert commit_of(tmp_path) is None


def test_a_folder_that_is_ignored_as_a_whole_has_no_commit(topics: Path) -> None:
    (topics.parent / ".git" / "info" / "exclude").write_text("other/\n")
    other = topics.parent / "other"
    other.mkdir()
    (other / "a.yaml").write_text("a: b\n")

    assert commit_of(other) is None


def test_without_git_there_is_no_commit(topics: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(topics))

    assert commit_of(topics) is None

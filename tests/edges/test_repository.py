"""Where a command finds the specs and the home, from each folder of a repository and from outside of one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from topicops.edges.repository import folders_up, home_of, specs_root_of, topics_of
from topicops.flow.runs.run import home_folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository with specs and two folders below each other, in a folder with specs and a home of its own."""
    for folder in ("topics/environments", ".topicops", "repo/.git", "repo/topics/environments", "repo/a/b"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path / "repo"


@pytest.mark.parametrize("standing", [".", "a", "a/b", "topics", "topics/environments"])
def test_specs_and_home_are_the_repositorys_from_each_of_its_folders(root: Path, standing: str) -> None:
    assert topics_of(root / standing) == root / "topics"
    assert home_of(root / standing) == root / ".topicops"


def test_the_nearest_home_and_the_nearest_specs_win(root: Path) -> None:
    (root / "a/.topicops").mkdir()
    (root / "a/topics/profiles").mkdir(parents=True)
    assert (topics_of(root / "a/b"), home_of(root / "a/b")) == (root / "a/topics", root / "a/.topicops")
    assert (topics_of(root), home_of(root)) == (root / "topics", root / ".topicops")


def test_a_folder_that_is_called_topics_and_holds_no_specs_is_passed_over(root: Path) -> None:
    (root / "a/topics/src").mkdir(parents=True)
    assert topics_of(root / "a/b") == root / "topics"
    assert topics_of(root / "a") == root / "a/topics", "in the working folder itself the name is enough"


def test_outside_a_repository_only_the_working_folder_counts(tmp_path: Path, root: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    assert folders_up(outside) == (outside,)
    assert (topics_of(outside), home_of(outside)) == (None, outside / ".topicops")
    assert root.parent / ".topicops" not in [home_of(folder) for folder in (root, root / "a")]


def test_a_repository_of_another_account_is_not_searched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".topicops").mkdir()
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    assert (topics_of(root / "a"), home_of(root / "a")) == (None, root / "a/.topicops")


def test_the_home_that_a_variable_names_wins(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "a")
    monkeypatch.delenv("TOPICOPS_HOME", raising=False)
    assert home_folder() == root / ".topicops"
    monkeypatch.setenv("TOPICOPS_HOME", "mine")
    assert home_folder() == root / "a/mine"


def test_the_root_of_specs_is_found_from_a_file_of_them(root: Path) -> None:
    assert specs_root_of(root / "topics/payments/payments.orders.yaml") == root / "topics"
    assert specs_root_of(root / "a/b") is None

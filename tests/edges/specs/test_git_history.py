"""Whether the history of a commit contains another one, by a real git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fixtures.git_bundle import Repository
from topicops.edges.specs.git import is_in_history, versions_of

UNKNOWN = "f" * 40


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "work", tmp_path / "bare")


def test_a_file_that_was_moved_has_the_texts_of_before(repository: Repository) -> None:
    first = repository.work / "shop/a b.yaml"
    first.parent.mkdir(parents=True)
    texts = [f"one: {number}\ntwo: {number}\nthree: 3\nfour: 4\n" for number in range(3)]
    for text in texts:
        first.write_text(text)
        repository.publish()
    moved = repository.work / "archive/a b.yaml"
    moved.parent.mkdir()
    first.rename(moved)
    repository.publish()

    assert [text for _, text in versions_of(moved)] == [texts[2], *reversed(texts)]


def test_a_commit_and_all_before_it_are_in_its_history(repository: Repository) -> None:
    first, second = repository.publish(), repository.publish()
    assert is_in_history(repository.work, first, of=second) is True
    assert is_in_history(repository.work, second, of=second) is True


def test_a_later_commit_a_rewritten_one_and_one_that_is_gone_are_not(repository: Repository) -> None:
    first, second = repository.publish(), repository.publish()
    rewritten = repository.rewrite(first)
    assert is_in_history(repository.work, second, of=first) is False
    assert is_in_history(repository.work, second, of=rewritten) is False
    assert is_in_history(repository.work, UNKNOWN, of=rewritten) is False


def test_a_shallow_clone_says_yes_and_never_no(repository: Repository, tmp_path: Path) -> None:
    first, second, third = (repository.publish() for _ in range(3))
    clone = tmp_path / "clone"
    command = ["git", "clone", "--quiet", "--depth=2", repository.bare.as_uri(), str(clone)]
    subprocess.run(command, check=True, timeout=60)
    assert is_in_history(clone, second, of=third) is True
    assert is_in_history(clone, first, of=third) is None


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(UNKNOWN, UNKNOWN[:-1] + "e", id="git knows neither"),
        pytest.param("--all", UNKNOWN, id="an option"),
        pytest.param("main", "HEAD", id="names of branches"),
    ],
)
def test_what_git_does_not_know_has_no_answer(repository: Repository, earlier: str, later: str) -> None:
    repository.publish()
    assert is_in_history(repository.work, earlier, of=later) is None


def test_outside_a_repository_there_is_no_answer(tmp_path: Path) -> None:
    assert is_in_history(tmp_path, UNKNOWN, of="e" * 40) is None

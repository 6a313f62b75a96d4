"""Which commit the files are, and whether its history contains another one, by a real git."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.git_bundle import Repository
from topicops.edges.specs.git import Checkout, checkout_of, is_in_history, removed_files, versions_of

UNKNOWN = Checkout(None, "git does not know the folder, or has no commit of it", is_known=False)
IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    """Return a committed folder of one spec."""
    folder = tmp_path / "topics"
    (folder / "web").mkdir(parents=True)
    (folder / "web" / "clicks.yaml").write_text("a: b\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Describe clicks")
    return folder


def test_clean_files_have_the_commit_of_the_work_tree(topics: Path) -> None:
    assert checkout_of(topics).commit == git(topics, "rev-parse", "HEAD")


def test_a_change_elsewhere_does_not_matter(topics: Path) -> None:
    (topics.parent / "notes.txt").write_text("x")

    assert checkout_of(topics).commit == git(topics, "rev-parse", "HEAD")


@pytest.mark.parametrize("file_mode", ["--chmod=+x", "--chmod=-x"])
def test_who_may_execute_a_file_says_nothing_of_its_bytes(topics: Path, file_mode: str) -> None:
    git(topics, "update-index", file_mode, "web/clicks.yaml")
    git(topics, "commit", "-qm", "Another mode", "--allow-empty")

    assert checkout_of(topics).commit == git(topics, "rev-parse", "HEAD")


CLICKS = "topics/web/clicks.yaml"
OTHER_BYTES = f"{CLICKS} has other bytes than in the commit: it was edited, or a filter of git converts it"
NOT_HERE = f"{CLICKS} is not here: it was removed, or the checkout is sparse"


@pytest.mark.parametrize(
    ("change", "why_not"),
    [
        pytest.param(lambda folder: (folder / "web/clicks.yaml").write_text("a: c\n"), OTHER_BYTES, id="changed"),
        pytest.param(
            lambda folder: (folder / "web/new.yaml").write_text(""),
            "topics/web/new.yaml is not in the commit",
            id="new",
        ),
        pytest.param(lambda folder: (folder / "web/clicks.yaml").unlink(), NOT_HERE, id="removed"),
        pytest.param(
            lambda folder: git_ignored(folder), "topics/web/hidden.yaml is not in the commit", id="ignored by git"
        ),
        pytest.param(lambda folder: staged(folder), OTHER_BYTES, id="staged"),
        pytest.param(lambda folder: marked(folder, "--assume-unchanged"), OTHER_BYTES, id="assumed to be unchanged"),
        pytest.param(lambda folder: marked(folder, "--skip-worktree"), OTHER_BYTES, id="marked to be skipped"),
        pytest.param(lambda folder: sparse(folder), NOT_HERE, id="not in a sparse checkout"),
        pytest.param(lambda folder: filtered(folder), OTHER_BYTES, id="converted by a filter"),
        pytest.param(lambda folder: with_line_ends(folder), OTHER_BYTES, id="with other line ends"),
        pytest.param(
            lambda folder: linked(folder), "topics/web/linked.yaml is a link, and links are not followed", id="a link"
        ),
        pytest.param(
            lambda folder: with_submodule(folder),
            "topics/pay is a submodule, whose files are in another repository",
            id="a submodule",
        ),
        pytest.param(
            lambda folder: with_submodule(folder, is_there=False),
            "topics/pay is a submodule, whose files are in another repository",
            id="a submodule that is not there",
        ),
    ],
)
def test_files_that_differ_from_the_commit_have_none_and_the_path_is_named(
    topics: Path, change: Callable[[Path], object], why_not: str
) -> None:
    change(topics)

    found = checkout_of(topics)
    assert (found.commit, found.is_known) == (None, True)
    assert found.why_not == f"{why_not} (commit {git(topics, 'rev-parse', 'HEAD')[:12]})"


def marked(folder: Path, mark: str) -> None:
    git(folder, "update-index", mark, "web/clicks.yaml")
    (folder / "web/clicks.yaml").write_text("a: c\n")


def sparse(folder: Path) -> None:
    (folder / "shop").mkdir()
    (folder / "shop/orders.yaml").write_text("a: b\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Describe orders")
    git(folder.parent, "sparse-checkout", "set", "--cone", "topics/shop")


def filtered(folder: Path) -> None:
    (folder.parent / ".gitattributes").write_text("*.yaml filter=seven\n")
    git(folder, "config", "filter.seven.smudge", "sed s/b/7/")
    git(folder, "config", "filter.seven.clean", "sed s/7/b/")
    checked_out_again(folder)


def with_line_ends(folder: Path) -> None:
    (folder.parent / ".gitattributes").write_text("*.yaml text eol=crlf\n")
    checked_out_again(folder)


def checked_out_again(folder: Path) -> None:
    git(folder, "add", "..")
    git(folder, "commit", "-qm", "Attributes")
    (folder / "web/clicks.yaml").unlink()
    git(folder, "checkout", "-q", "--", ".")
    assert git(folder, "status", "--porcelain") == "", "git calls it clean"


def linked(folder: Path) -> None:
    (folder / "web/linked.yaml").symlink_to("clicks.yaml")
    staged_as_it_is(folder)


def with_submodule(folder: Path, *, is_there: bool = True) -> None:
    commit = git(folder, "rev-parse", "HEAD")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{commit},topics/pay")
    git(folder, "commit", "-qm", "A submodule")
    (folder / "pay").mkdir()
    if is_there:
        git(folder.parent, "clone", "-q", ".", "topics/pay")


def staged_as_it_is(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "As it is")


def git_ignored(folder: Path) -> None:
    (folder.parent / ".git" / "info" / "exclude").write_text("hidden.yaml\n")
    (folder / "web" / "hidden.yaml").write_text("a: c\n")


def staged(folder: Path) -> None:
    (folder / "web" / "clicks.yaml").write_text("a: c\n")
    git(folder, "add", ".")


def test_files_outside_git_have_no_commit(tmp_path: Path) -> None:
    assert checkout_of(tmp_path) == UNKNOWN


def test_a_repository_without_commit_has_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")

    assert checkout_of(tmp_path) == UNKNOWN


def test_a_folder_that_is_ignored_as_a_whole_has_no_commit(topics: Path) -> None:
    (topics.parent / ".git" / "info" / "exclude").write_text("other/\n")
    other = topics.parent / "other"
    other.mkdir()
    (other / "a.yaml").write_text("a: b\n")

    assert checkout_of(other) == UNKNOWN


def test_without_git_there_is_no_commit(topics: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(topics))

    assert checkout_of(topics) == UNKNOWN


def test_a_file_that_was_renamed_or_removed_is_known_by_its_old_name(topics: Path) -> None:
    for name in ("moved", "removed", "back"):
        (topics / "web" / f"{name}.yaml").write_text(f"name: {name}\n")
    git(topics, "add", ".")
    git(topics, "commit", "-qm", "Describe more")
    git(topics, "mv", "web/moved.yaml", "web/moved-v2.yaml")
    git(topics, "rm", "-q", "web/back.yaml")
    git(topics, "commit", "-qm", "Rename one")
    (topics / "web" / "removed.yaml").unlink()
    (topics / "web" / "back.yaml").write_text("name: back\n")

    assert removed_files(topics) == {"web/moved.yaml", "web/removed.yaml"}


def test_outside_a_work_tree_no_file_is_known_to_be_removed(tmp_path: Path) -> None:
    assert removed_files(tmp_path) == frozenset()


NO_COMMIT = "f" * 40


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
    assert is_in_history(repository.work, NO_COMMIT, of=rewritten) is False


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
        pytest.param(NO_COMMIT, NO_COMMIT[:-1] + "e", id="git knows neither"),
        pytest.param("--all", NO_COMMIT, id="an option"),
        pytest.param("main", "HEAD", id="names of branches"),
    ],
)
def test_what_git_does_not_know_has_no_answer(repository: Repository, earlier: str, later: str) -> None:
    repository.publish()
    assert is_in_history(repository.work, earlier, of=later) is None


def test_outside_a_repository_there_is_no_answer(tmp_path: Path) -> None:
    assert is_in_history(tmp_path, NO_COMMIT, of="e" * 40) is None

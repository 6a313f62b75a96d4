"""Files of commits, read from git's store: what a stranger's branch may hold, and what its copy holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fixtures.workflow import commit, git
from topicops.features.pull_requests.edges import git_trees
from topicops.features.pull_requests.edges.git_trees import (
    commit_id,
    is_ancestor,
    merge_base_of,
    merged_tree,
    stored_files,
    write_files,
)
from topicops.model.errors import UsageError


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a main with two files of topics, and a branch ``change`` that begins there."""
    folder = tmp_path / "repository"
    write(folder, "topics/shop/orders.yaml", "orders")
    write(folder, "topics/web/clicks.yaml", "clicks")
    git(folder, "init", "-q")
    commit(folder)
    git(folder, "checkout", "-q", "-b", "change")
    return folder


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def test_the_merge_of_two_branches_is_read_without_a_checkout(repository: Path, tmp_path: Path) -> None:
    write(repository, "topics/shop/orders.yaml", "orders of the branch")
    head = commit(repository)
    git(repository, "checkout", "-q", "main")
    write(repository, "topics/web/clicks.yaml", "clicks of main")
    base = commit(repository)

    files = stored_files(repository, merged_tree(repository, base, head), "topics")
    write_files(repository, files, tmp_path / "copy")

    found = {path: (tmp_path / "copy" / path).read_text(encoding="utf-8") for path in files}
    assert found == {"shop/orders.yaml": "orders of the branch", "web/clicks.yaml": "clicks of main"}
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "rev-parse", "--abbrev-ref", "HEAD").strip() == "main"


def test_a_conflict_names_the_files(repository: Path) -> None:
    write(repository, "topics/shop/orders.yaml", "orders of the branch")
    head = commit(repository)
    git(repository, "checkout", "-q", "main")
    write(repository, "topics/shop/orders.yaml", "orders of main")
    base = commit(repository)

    with pytest.raises(UsageError, match=r"conflicts with its base in topics/shop/orders\.yaml: merge the base branch"):
        merged_tree(repository, base, head)


def test_a_submodule_is_refused_with_its_path(repository: Path) -> None:
    """A pull request that moves it changes topics, and no file of this repository shows them."""
    before = git(repository, "rev-parse", "HEAD").strip()
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{before},topics/pay")
    git(repository, "commit", "-q", "-m", "A submodule")

    with pytest.raises(UsageError, match="topics/pay is a submodule: its files are in another repository"):
        stored_files(repository, "HEAD", "topics")
    assert stored_files(repository, "HEAD", "topics/web").keys() == {"clicks.yaml"}


def test_a_question_to_git_is_about_the_repository_whatever_hook_asks(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    write(other, "topics/x.yaml", "of another repository")
    git(other, "init", "-q")
    commit(other)
    head = git(repository, "rev-parse", "HEAD").strip()
    for name in ("GIT_DIR", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))

    assert stored_files(repository, head, "topics").keys() == {"shop/orders.yaml", "web/clicks.yaml"}


def test_more_entries_than_any_repository_of_topics_has_are_refused(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_trees, "MOST_ENTRIES", 1)
    with pytest.raises(UsageError, match="topics/ of HEAD has more than 1 entries; name a smaller folder"):
        stored_files(repository, "HEAD", "topics")


def test_no_filter_hook_or_driver_of_the_branch_runs(repository: Path, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    for setting in (
        f"filter.odd.smudge touch {trace}",
        f"filter.odd.clean touch {trace}",
        f"merge.odd.driver touch {trace}",
    ):
        name, _, command = setting.partition(" ")
        git(repository, "config", name, command)
    write(repository, ".gitattributes", "* filter=odd\n")
    write(repository, "topics/shop/orders.yaml", "orders of the branch")
    git(repository, "-c", "filter.odd.clean=cat", "add", "--all")
    git(repository, "-c", "filter.odd.clean=cat", "commit", "-q", "-m", "Attributes")
    trace.unlink(missing_ok=True)

    files = stored_files(repository, merged_tree(repository, "main", "change"), "topics")
    write_files(repository, files, tmp_path / "copy")

    assert (tmp_path / "copy/shop/orders.yaml").read_text(encoding="utf-8") == "orders of the branch"
    assert not trace.exists()


def test_names_that_a_shell_would_run_are_names(repository: Path, tmp_path: Path) -> None:
    names = ["$(touch ran).yaml", "`touch ran`.yaml", "a\nb.yaml", "-rf.yaml", "é\u202e.yaml", "' ; touch ran ; '.yaml"]
    for name in names:
        write(repository, f"topics/shop/{name}", "x")
    head = commit(repository)

    files = stored_files(repository, head, "topics")
    write_files(repository, files, tmp_path / "copy")

    assert {f"shop/{name}" for name in names} < files.keys()
    assert sorted(path.name for path in (tmp_path / "copy/shop").iterdir()) == sorted([*names, "orders.yaml"])
    assert list(tmp_path.rglob("ran")) == []


def test_a_link_of_the_branch_leads_nowhere(repository: Path, tmp_path: Path) -> None:
    (repository / "topics/shop/secret.yaml").symlink_to("/etc/passwd")
    head = commit(repository)

    write_files(repository, stored_files(repository, head, "topics"), tmp_path / "copy")

    link = tmp_path / "copy/shop/secret.yaml"
    assert link.is_symlink()
    assert not link.exists()


@pytest.mark.parametrize("name", ["..", ".git", "."])
def test_a_path_that_leads_out_of_the_folder_is_refused(repository: Path, name: str) -> None:
    blob = subprocess.run(
        ["git", "-C", str(repository), "hash-object", "-w", "--stdin"],
        input="x",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    inner = made_tree(repository, f"100644 blob {blob}\tout.yaml")
    folder = made_tree(repository, f"040000 tree {inner}\t{name}")
    root = made_tree(repository, f"040000 tree {folder}\ttopics")

    with pytest.raises(UsageError, match="a path there that no work tree may have"):
        stored_files(repository, root, "topics")


def made_tree(repository: Path, line: str) -> str:
    """Return the id of a tree with this one entry, written without git's checks of names."""
    mode, kind_and_id, name = line.split(" ", 1)[0], line.split(" ", 1)[1].split("\t")[0], line.split("\t")[1]
    raw = f"{mode.lstrip('0')} {name}\0".encode() + bytes.fromhex(kind_and_id.split(" ")[1])
    command = ["git", "-C", str(repository), "hash-object", "-t", "tree", "--literally", "-w", "--stdin"]
    return subprocess.run(command, input=raw, capture_output=True, check=True).stdout.decode().strip()


def test_a_file_and_a_folder_of_one_name_are_one_sentence(repository: Path, tmp_path: Path) -> None:
    head = commit(repository)
    files = dict(stored_files(repository, head, "topics"))
    files["shop/orders.yaml/more.yaml"] = files["shop/orders.yaml"]

    with pytest.raises(UsageError, match="the files of the branch cannot be written"):
        write_files(repository, files, tmp_path / "copy")


@pytest.mark.parametrize("name", ["no-such-branch", "--output=x", "0" * 40])
def test_a_commit_that_is_not_there_is_one_sentence(repository: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"no such commit|no name of a commit"):
        commit_id(repository, name)


@pytest.fixture
def shallow(repository: Path, tmp_path: Path) -> Path:
    """Return a clone of the branch ``change`` alone, with one commit, as a CI makes it."""
    write(repository, "topics/shop/orders.yaml", "orders of the branch")
    commit(repository)
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=change", repository.as_uri(), "shallow")
    return tmp_path / "shallow"


NO_GIT = "not in a git repository; branches are read from git, so run this in a clone"
NO_COMMIT = "this branch has no commit yet; make the first one: git add --all && git commit"


@pytest.mark.parametrize(
    ("in_git", "name", "said"),
    [(False, "HEAD", NO_GIT), *((True, name, NO_COMMIT) for name in ("HEAD", "main", "origin/main"))],
)
def test_a_folder_without_git_or_without_a_commit_says_so(tmp_path: Path, in_git: bool, name: str, said: str) -> None:
    if in_git:
        git(tmp_path, "init", "-q")

    with pytest.raises(UsageError) as raised:
        commit_id(tmp_path, name)

    assert str(raised.value) == f"{tmp_path}: {said}"


def test_a_checkout_without_any_branch_has_a_commit_all_the_same(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    git(repository, "branch", "-q", "-D", "main", "change")

    with pytest.raises(UsageError, match=r"^origin/main: this clone has no such commit$"):
        commit_id(repository, "origin/main")


def test_a_clone_of_another_account_gives_the_reason_of_git_and_its_command(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own tests set it
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")

    with pytest.raises(UsageError) as raised:
        commit_id(repository, "HEAD")

    assert str(raised.value) == (
        f"git says: detected dubious ownership in repository at '{repository}'; if you trust it: "
        f"git config --global --add safe.directory {repository}"
    )


@pytest.mark.parametrize("name", ["origin/main", "main"])
def test_the_command_for_a_shallow_clone_brings_the_commit(shallow: Path, name: str) -> None:
    with pytest.raises(UsageError, match="because it is shallow") as raised:
        commit_id(shallow, name)

    command = str(raised.value).partition("(")[2].partition(")")[0]
    assert command.startswith("git fetch --unshallow origin main:")
    git(shallow, *command.split()[1:])
    assert commit_id(shallow, name) == commit_id(shallow, "HEAD~1")


def test_the_command_for_a_clone_of_one_branch_brings_the_commit(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--single-branch", "--branch=change", repository.as_uri(), "clone")

    with pytest.raises(UsageError, match=r"no such commit; fetch it first \(git fetch origin main:") as raised:
        commit_id(tmp_path / "clone", "origin/main")

    command = str(raised.value).partition("(")[2].partition(")")[0]
    git(tmp_path / "clone", *command.split()[1:])
    assert commit_id(tmp_path / "clone", "origin/main") == commit_id(repository, "main")


def test_a_name_that_a_shell_would_run_is_in_no_command(shallow: Path) -> None:
    with pytest.raises(UsageError, match=r"fetch it first \(git fetch --unshallow origin\)"):
        commit_id(shallow, "a;touch${IFS}ran")


def test_a_shallow_clone_that_lacks_the_common_commit_says_that_it_is_shallow(repository: Path, shallow: Path) -> None:
    git(repository, "checkout", "-q", "main")
    write(repository, "topics/web/clicks.yaml", "clicks of main")
    base = commit(repository)
    git(shallow, "fetch", "-q", "--depth=1", "origin", "main")

    with pytest.raises(UsageError, match=r"this clone is shallow .* give checkout fetch-depth: 0") as raised:
        merged_tree(shallow, base, commit_id(shallow, "HEAD"))

    assert "2.38" not in str(raised.value)


def test_histories_without_a_common_commit_are_called_so(repository: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "other")
    write(repository, "topics/web/more.yaml", "more")
    other = commit(repository)

    with pytest.raises(UsageError, match=r"refusing to merge unrelated histories$"):
        merged_tree(repository, commit_id(repository, "main"), other)


def test_an_older_git_is_told_which_one_is_needed(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "bin/git"
    write(tmp_path, "bin/git", "#!/bin/sh\ncase $* in *version) echo git version 2.34.1 ;; *) exit 129 ;; esac\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent))

    with pytest.raises(UsageError, match=r"git 2\.38 or newer is needed here, and this is git version 2\.34$"):
        merged_tree(repository, "0" * 40, "1" * 40)


def test_the_history_says_what_contains_what(repository: Path) -> None:
    first = commit_id(repository, "main")
    second = commit(repository)

    assert is_ancestor(repository, first, second) is True
    assert is_ancestor(repository, second, first) is False
    assert is_ancestor(repository, "0" * 40, second) is None
    assert merge_base_of(repository, "main") == first

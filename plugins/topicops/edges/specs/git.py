"""Asks git which commit the files are from, and what its history says of them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import NamedTuple

from topicops.model.errors import UsageError

_TIMEOUT_S = 30
_SURROUNDINGS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_REPLACE_REF_BASE",
)
"""Variables that git sets inside hooks; they would make git use another repository."""
_NOT_UTF_8 = re.compile("[\ud800-\udfff]")
"""Characters that ``os.fsdecode`` makes of bytes that are not UTF-8."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHA1_DIGITS = 40
_NO_FILES: Mapping[str, str] = {
    "120000": "a link, and links are not followed",
    "160000": "a submodule, whose files are in another repository",
}
"""Descriptions of entries in a tree that are not files, by mode."""
_COMMIT_AND_PATH = re.compile(r"([0-9a-f]{40,64})\0\n([^\0]+)\0")
"""Form of ``git log --name-only -z``: the path is from the repository's root."""
_LISTED_IN_TREE = re.compile(r"([0-7]{6}) (?:blob|commit) ([0-9a-f]{40,64})\t([^\0]+)\0")
"""Mode, id and path."""


class Checkout(NamedTuple):
    """Which commit the files of a folder are, exactly."""

    commit: str | None
    """Commit of the files; None means no known commit."""
    why_not: str = ""
    """Reason why the files are not those of the commit that git has checked out, with the first path that differs."""
    is_known: bool = True
    """False: the folder is in no commit of any repository here, so that git can say nothing about it."""


def checkout_of(topics: Path) -> Checkout:
    """Compare all files below ``topics`` with the tree of ``HEAD``: paths, kinds and bytes.

    Git's own word for clean is not enough: a sparse checkout, marks in the index (``skip-worktree``,
    ``assume-unchanged``), filters and submodules are clean for git, and their files say something else than the commit.
    """
    commit = _ask(topics, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    listed = _ask(topics, "ls-tree", "-r", "-z", commit, "--", ".") if commit else None
    tree = _LISTED_IN_TREE.findall(listed or "")
    if commit is None or not tree:
        return Checkout(None, "git does not know the folder, or has no commit of it", is_known=False)
    difference = _difference(topics, {path: (mode, blob) for mode, blob, path in tree})
    return Checkout(None, f"{difference} (commit {commit[:12]})") if difference else Checkout(commit)


def _difference(topics: Path, tree: Mapping[str, tuple[str, str]]) -> str:
    """Say how the files differ from those of a tree, its mode and blob id by path; empty: they are the same."""
    shown = name_in_repository(topics)
    for path, (mode, _) in sorted(tree.items()):
        if mode in _NO_FILES:
            return f"{shown}{path} is {_NO_FILES[mode]}"
    there = set(_files_below(topics))
    if more := sorted(there - tree.keys()):
        return f"{shown}{more[0]} is not in the commit"
    for path, (_, blob) in sorted(tree.items()):
        if path not in there:
            return f"{shown}{path} is not here: it was removed, or the checkout is sparse"
        if _blob_id(f"{topics}/{path}", len(blob)) != blob:
            return f"{shown}{path} has other bytes than in the commit: it was edited, or a filter of git converts it"
    return ""


def _files_below(folder: Path) -> Iterator[str]:
    """Yield the path of everything that is no folder, relative to ``folder``; ``.git`` of the folder itself aside."""
    for above, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(above, name))]  # noqa: PTH114, PTH118
        place = os.path.relpath(above, folder)
        if place == os.curdir and ".git" in folders:
            folders.remove(".git")
        yield from (name if place == os.curdir else f"{place}/{name}" for name in (*files, *links))


def _blob_id(file: str, digits: int) -> str:
    """Return the id that git gives to these bytes; empty where the file cannot be read.

    It has 40 digits for SHA-1, 64 for SHA-256. Source: gitformat-pack(5), *object names*.
    """
    try:
        with open(file, "rb", buffering=0) as opened:  # noqa: PTH123 - a path for each of 50,000 files costs more
            content = opened.read()
    except OSError:
        return ""
    algorithm = hashlib.sha1 if digits == _SHA1_DIGITS else hashlib.sha256
    return algorithm(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def is_in_history(folder: Path, earlier: str, *, of: str) -> bool | None:
    """Return whether the commit ``of`` is ``earlier`` or follows it; both are full ids.

    None where git cannot say: it does not know ``folder`` or the later commit, or the clone is shallow. A clone with
    its whole history that lacks the earlier commit says no.
    """
    if not (_COMMIT.fullmatch(earlier) and _COMMIT.fullmatch(of)):
        return None
    if earlier == of:
        return True
    if _ask(folder, "cat-file", "-e", f"{of}^{{commit}}") is None:
        return None
    if _ask(folder, "rev-list", "--max-count=1", earlier, f"^{of}", "--") == "":
        return True
    return False if _ask(folder, "rev-parse", "--is-shallow-repository") == "false" else None


def versions_of(file: Path, *, most: int = 50) -> Iterator[tuple[str, str]]:
    """Yield commit and text of a file as ``most`` commits of this branch have it, newest first; none without git.

    The file of before a move is the same file. Files of its name in other domains come last: git sees no move that is
    not committed, or whose commit edits the file.
    """
    form = ("--name-only", "-z", "--format=%H", f"--max-count={most}")
    places = ("--follow", "--", f"./{file.name}"), ("--", f":(glob)../*/{file.name}")
    answers = "".join(_ask(file.parent, "log", *form, *place) or "" for place in places)
    for commit, path in dict.fromkeys(_COMMIT_AND_PATH.findall(answers)):
        text = _ask(file.parent, "show", f"{commit}:{path}")
        if text and not _NOT_UTF_8.search(text):
            yield commit, f"{text}\n"


def name_in_repository(folder: Path) -> str:
    """Return ``topics/``: where the folder is in its work tree, so that all who have a copy give it one name.

    Outside a work tree it is named relative to the working folder, or by its own name where it is not below that.
    """
    place = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay: a person named them
    root = next((above for above in (place, *place.parents) if (above / ".git").exists()), None)
    name = os.path.relpath(place, root or Path.cwd())
    if name == os.curdir:
        return ""
    return f"{place.name if name.startswith(os.pardir) else name}/".replace(os.sep, "/")


def folder_in_repository(topics: Path) -> str:
    """Return ``topics``: the folder of topics from the repository's root, without a slash at its end.

    Raises ``UsageError`` where it is the root itself, in which the files of the forge are, too.
    """
    folder = name_in_repository(topics).rstrip("/")
    if not folder:
        raise UsageError(
            f"{topics}: this is the repository's root; name the folder below it that holds the topics, as in "
            "--topics topics (if the topics are at the root itself, move them into a folder)"
        )
    return folder


def main_branch(folder: Path) -> str | None:
    """Return the default branch of ``origin`` if the clone knows it, else the branch of ``HEAD``, else None."""
    remote = _ask(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    own = _ask(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    return remote.removeprefix("origin/") if remote else own


def removed_files(folder: Path) -> frozenset[str]:
    """Files below ``folder`` that commits of the last 90 days had and that are gone now, relative to it; with ``/``.

    A renamed file is in it under its old name. Empty where git cannot answer.
    """
    only = ("--no-renames", "--diff-filter=D", "--name-only", "--relative", "-z")
    committed = _ask(folder, "log", *only, "--format=", "--since=90.days.ago", "HEAD", "--", ".")
    not_committed = _ask(folder, "diff", *only, "HEAD", "--", ".")
    names = {name.strip("\n") for answer in (committed, not_committed) for name in (answer or "").split("\0")} - {""}
    return frozenset(name for name in names if not (folder / name).exists())


def own_surroundings() -> dict[str, str]:
    """Return the environment variables for a question to git about a folder, whatever hook or command this runs in."""
    return {name: value for name, value in os.environ.items() if name not in _SURROUNDINGS}


def _ask(folder: Path, *question: str) -> str | None:
    """Return git's answer without the last line end; None if it has none."""
    # No hook, monitor or lock of a repository that somebody else wrote: looking changes and starts nothing.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *question]
    try:
        ended = subprocess.run(
            command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=own_surroundings(), timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if ended.returncode else os.fsdecode(ended.stdout).rstrip("\n")

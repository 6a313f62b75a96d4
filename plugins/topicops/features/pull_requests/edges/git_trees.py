"""Files as commits have them, read from git's store: nothing is checked out, no filter, hook or driver runs.

The commits may be those of a stranger's branch. Their files are data, so paths, kinds and sizes are checked here.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

from topicops.edges.specs.git import own_surroundings
from topicops.model.errors import UsageError
from topicops.model.printable import printable

_TIMEOUT_S = 120
_CHUNK = 1 << 16
MOST_ENTRIES = 200_000
"""Number of entries of the folder; more than ten times the largest repository of topics that is known."""
MOST_BYTES = 256 * 1024 * 1024
"""Bytes of all files together."""
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ENTRY = re.compile(rb"([0-7]{6}) (blob|tree|commit) ([0-9a-f]{40,64}) +([0-9]+|-)\t(.+)", re.DOTALL)
"""Mode, type, object id, size and path of ``git ls-tree --long -z``."""
_LINK, _SUBMODULE = b"120000", b"160000"
_NOT_A_NAME = frozenset({"", ".", "..", ".git"})
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
"""Pattern of a branch, tag or commit id that may be in a command to copy."""
_TRUST = re.compile(r"^\s*(git config --global --add safe\.directory .+)$", re.MULTILINE)
"""The command in git's answer where the repository belongs to another account."""
_VERSION = re.compile(r"git version ([0-9]{1,4})\.([0-9]{1,4})")
_MERGES_TREES = (2, 38)
"""The first git whose ``merge-tree`` has ``--write-tree``."""
_NO_FILE = "not-followed"
"""Target of the branch's links in our copy; the readers of specs follow no link, and say so."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a commit; two with the same object id have the same bytes."""

    object_id: str
    mode: bytes
    size: int


def commit_id(repository: Path, name: str) -> str:
    """Find the commit that ``name`` means. Raises ``UsageError`` where there is none, or no repository to read."""
    if name.startswith("-"):
        raise UsageError(f"{printable(name)} is no name of a commit")
    found = _git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    commit = found.stdout.decode("ascii", "replace").strip()
    if found.returncode or not COMMIT.fullmatch(commit):
        raise UsageError(_why_no_commit(repository, name))
    return commit


def _why_no_commit(repository: Path, name: str) -> str:
    asked = _git(repository, "rev-parse", "--is-shallow-repository")
    if asked.returncode:
        return _why_no_repository(repository, asked.stderr.decode("utf-8", "replace"))
    is_born = _git(repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode == 0
    if not is_born and (name == "HEAD" or not _git(repository, "rev-list", "--all", "--max-count=1").stdout):
        return f"{_shown(repository)}: this branch has no commit yet; make the first one: git add --all && git commit"
    no_such = f"{printable(name)}: this clone has no such commit"
    remotes = _git(repository, "remote").stdout.decode("utf-8", "replace").split()
    if not remotes:
        return no_such
    if asked.stdout.strip() == b"true":
        command = f"git fetch --unshallow {_what_to_fetch(name, remotes)}"
        return f"{no_such}, because it is shallow; fetch it first ({command}), or give checkout fetch-depth: 0"
    return f"{no_such}; fetch it first (git fetch {_what_to_fetch(name, remotes)})"


def _what_to_fetch(name: str, remotes: Sequence[str]) -> str:
    """Name remote and branch: a clone of one branch keeps another one only where the command says under which name."""
    remote, _, branch = name.partition("/")
    if not _PLAIN_NAME.fullmatch(name):
        return "origin"
    if branch and remote in remotes:
        return f"{remote} {branch}:refs/remotes/{name}"
    return f"origin {name}" if COMMIT.fullmatch(name) else f"origin {name}:{name}"


def _why_no_repository(folder: Path, said: str) -> str:
    reason = printable(said.strip().partition("\n")[0].removeprefix("fatal: "))
    if "not a git repository" in reason:
        return f"{_shown(folder)}: not in a git repository; branches are read from git, so run this in a clone"
    if command := _TRUST.search(said):
        return f"git says: {reason}; if you trust it: {printable(command[1])}"
    return f"{_shown(folder)}: git says: {reason or 'nothing'}"


def _shown(folder: Path) -> str:
    return printable(os.path.abspath(folder))  # noqa: PTH100 - links stay: a person named them


def is_ancestor(repository: Path, earlier: str, later: str) -> bool | None:
    """Say whether the history of ``later`` contains ``earlier``. None means that this clone lacks one of them."""
    status = _git(repository, "merge-base", "--is-ancestor", earlier, later).returncode
    return status == 0 if status in (0, 1) else None


def fetch(repository: Path) -> None:
    """Bring what ``origin`` has. Nothing happens where it does not answer: the caller looks for what it needs."""
    _git(repository, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "origin")


def merge_base_of(repository: Path, base: str) -> str:
    """Find the commit of ``base`` from which ``HEAD`` began; ``base`` itself where this clone is too shallow."""
    commit = commit_id(repository, base)
    return _git(repository, "merge-base", commit, "HEAD").stdout.decode().strip() or commit


def merged_tree(repository: Path, base: str, head: str) -> str:
    """Merge both commits without a work tree. Raises ``UsageError`` where git cannot, as for conflicts."""
    found = _git(repository, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", base, head)
    tree, *conflicts = found.stdout.split(b"\0")
    if found.returncode == 0 and COMMIT.fullmatch(tree.decode("ascii", "replace")):
        return tree.decode()
    if found.returncode == 1:
        named = ", ".join(sorted({printable(os.fsdecode(path)) for path in conflicts if path})[:10])
        raise UsageError(f"the branch conflicts with its base in {named}: merge the base branch into it, and push")
    said = found.stderr.decode("utf-8", "replace")
    raise UsageError(f"git cannot merge {base[:12]} and {head[:12]}: {_why_no_merge(repository, said)}")


def _why_no_merge(repository: Path, said: str) -> str:
    version = _git(repository, "version").stdout.decode("ascii", "replace")
    numbers = _VERSION.match(version)
    if numbers and (int(numbers[1]), int(numbers[2])) < _MERGES_TREES:
        return f"git 2.38 or newer is needed here, and this is {numbers[0]}"
    if "unrelated histories" in said and _git(repository, "rev-parse", "--is-shallow-repository").stdout == b"true\n":
        advice = "give checkout fetch-depth: 0, or fetch the rest (git fetch --unshallow)"
        return f"this clone is shallow and lacks the commit from which both began; {advice}"
    return printable(said.strip().partition("\n")[0].removeprefix("fatal: ")) or "it gives no reason"


def stored_files(repository: Path, tree: str, folder: str) -> Mapping[str, StoredFile]:
    """List the files below ``folder`` (``topics``), by path relative to it; none where the tree has no such folder.

    Raises ``UsageError``: A path could lead out of the folder, the files are too many bytes, or git fails.
    """
    found = dict(_entries(_listed(repository, tree, folder), folder))
    if sum(file.size for file in found.values()) > MOST_BYTES:
        raise UsageError(f"{folder}/ of {tree[:12]} has more than {MOST_BYTES:,} bytes")
    return found


def _listed(repository: Path, tree: str, folder: str) -> Iterator[bytes]:
    """Yield the lines of ``git ls-tree``, as they come: whoever pushes a tree decides how many there are."""
    command = _command(repository, "ls-tree", "-r", "-z", "--long", "--full-tree", tree, "--", f"{folder}/")
    lines, rest = 0, b""
    with subprocess.Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=_surroundings()) as listing:
        too_long = threading.Timer(_TIMEOUT_S, listing.kill)
        too_long.start()
        try:
            while chunk := listing.stdout.read(_CHUNK) if listing.stdout else b"":
                *whole, rest = (rest + chunk).split(b"\0")
                lines += len(whole)
                if lines > MOST_ENTRIES:
                    of = f"{folder}/ of {printable(tree[:12])}"
                    raise UsageError(f"{of} has more than {MOST_ENTRIES:,} entries; name a smaller folder")
                yield from whole
        finally:
            too_long.cancel()
            listing.kill()
    if listing.returncode:
        raise UsageError(f"git cannot list the files of {printable(tree)}; fetch that commit first")


def _entries(listed: Iterator[bytes], folder: str) -> Iterator[tuple[str, StoredFile]]:
    for line in listed:
        match = _ENTRY.fullmatch(line)
        path = match[5].decode("utf-8", "backslashreplace") if match else ""
        if not match or _NOT_A_NAME & set(path.split("/")):
            raise UsageError(f"{printable(path) or folder}: git has a path there that no work tree may have")
        if match[1] == _SUBMODULE:
            why = "its files are in another repository, so no plan can show what a change of it does"
            raise UsageError(f"{printable(path)} is a submodule: {why}; put the files into this repository")
        size = int(match[4]) if match[4] != b"-" else 0
        yield path.removeprefix(f"{folder}/"), StoredFile(match[3].decode(), match[1], size)


def write_files(repository: Path, files: Mapping[str, StoredFile], folder: Path) -> None:
    """Write these files below a new ``folder``. A link becomes a link that leads nowhere. Raises ``UsageError``."""
    regular = {path: file for path, file in files.items() if file.mode != _LINK}
    texts = _contents(repository, [file.object_id for file in regular.values()])
    try:
        folder.mkdir(parents=True)
        for above in {(folder / path).parent for path in files}:
            above.mkdir(parents=True, exist_ok=True)
        for path, text in zip(regular, texts, strict=True):
            (folder / path).write_bytes(text)
        for path in files.keys() - regular.keys():
            (folder / path).symlink_to(_NO_FILE)
    except (OSError, ValueError) as error:
        raise UsageError(f"the files of the branch cannot be written: {printable(str(error))}") from error


def _contents(repository: Path, object_ids: Sequence[str]) -> Iterator[bytes]:
    if not object_ids:
        return
    answer = _git(repository, "cat-file", "--batch", asked="".join(f"{name}\n" for name in object_ids).encode())
    position = 0
    for name in object_ids:
        end = answer.stdout.find(b"\n", position)
        head = answer.stdout[position:end].split()
        if end < 0 or len(head) != 3 or head[1] != b"blob":
            raise UsageError(f"git has no content for {name[:12]}: fetch the branch again, without --filter")
        size = int(head[2])
        yield answer.stdout[end + 1 : end + 1 + size]
        position = end + 2 + size


def _command(repository: Path, *arguments: str) -> list[str]:
    """Call git without a hook or monitor of the repository, and without a lock."""
    return ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(repository), *arguments]


def _surroundings() -> Mapping[str, str]:
    """Keep git from asking for a password, and its sentences in English."""
    return {**own_surroundings(), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def _git(repository: Path, *arguments: str, asked: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = _command(repository, *arguments)
    try:
        return subprocess.run(
            command,
            input=asked,
            stdin=DEVNULL if asked is None else None,
            capture_output=True,
            env=_surroundings(),
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise UsageError("git is not installed here, and pull requests are read from git") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"git {arguments[0]} has not ended within {_TIMEOUT_S} s") from error

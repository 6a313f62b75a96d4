"""What git knows of the files: which commit they are, if they are exactly that."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_TIMEOUT_S = 30
_SURROUNDINGS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Set inside hooks; they would point the question at another repository."""


def commit_of(topics: Path) -> str | None:
    """The commit whose files ``topics`` holds, byte for byte.

    None outside a work tree, without git, before the first commit, and when anything below ``topics`` is changed, new
    or ignored: then no commit tells what the files say.
    """
    commit = _ask(topics, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if commit is None or _ask(topics, "ls-files", "--error-unmatch", ".") is None:
        return None
    changed = _ask(topics, "status", "--porcelain", "--untracked-files=all", "--ignored", "--", ".")
    return commit if changed == "" else None


def _ask(folder: Path, *question: str) -> str | None:
    """The answer of git, without the last line end; None if it has none."""
    surroundings = {name: value for name, value in os.environ.items() if name not in _SURROUNDINGS}
    # No hook, monitor or lock of a repository that somebody else wrote: looking changes and starts nothing.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *question]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, env=surroundings, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None

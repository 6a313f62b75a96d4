"""Finds the specs and the home of a repository from any of its folders; never above the repository."""

from __future__ import annotations

import os
from pathlib import Path

HOME = ".topicops"
TOPICS = "topics"


def folders_up(folder: Path) -> tuple[Path, ...]:
    """Return the folder and those above it, up to the root of its repository; outside a repository the folder alone.

    A repository of another account does not count: whoever may write to a folder above, as to ``/tmp``, could
    otherwise choose where a run keeps its files. Git has the same rule (``safe.directory``).
    """
    above = (folder, *folder.parents)
    for number, place in enumerate(above):
        if (place / ".git").exists():
            return above[: number + 1] if _is_ours(place) and _is_ours(place / ".git") else (folder,)
    return (folder,)


def home_of(folder: Path) -> Path:
    """Return the nearest ``.topicops`` of this account in ``folders_up``; else that of the repository's root."""
    above = folders_up(folder)
    if (folder / HOME).is_dir():
        return folder / HOME
    return next((place / HOME for place in above if _is_ours(place / HOME)), above[-1] / HOME)


def topics_of(folder: Path) -> Path | None:
    """Return ``topics`` in the folder, or the nearest one in ``folders_up`` that holds environments or profiles."""
    if (folder / TOPICS).is_dir():
        return folder / TOPICS
    return next((place / TOPICS for place in folders_up(folder) if is_specs_root(place / TOPICS)), None)


def specs_root_of(path: Path) -> Path | None:
    """Return the folder of specs that ``path`` is, or is a domain or a file of; None means that it is in none."""
    place = Path(os.path.abspath(path))  # noqa: PTH100 - links stay: a person named them
    return next((above for above in (place, place.parent, place.parent.parent) if is_specs_root(above)), None)


def is_specs_root(folder: Path) -> bool:
    return (folder / "environments").is_dir() or (folder / "profiles").is_dir()


def _is_ours(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.geteuid()
    except OSError:
        return False

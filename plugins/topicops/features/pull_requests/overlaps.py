"""Open pull requests that touch the same topics."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from topicops.features.pull_requests.forge import PullRequest
from topicops.features.pull_requests.planned import OtherPullRequest


def overlaps(
    mine: Collection[str], files: Mapping[PullRequest, Collection[str]], *, mark: str
) -> Iterator[OtherPullRequest]:
    """Yield each of the others that changes one of these files of topics, by rising number.

    Args:
        mine: Files of topics that this pull request changes, from the repository's root.
        files: All files that each other one changes.
        mark: ``#`` or ``!``.
    """
    for other, changed in sorted(files.items(), key=lambda entry: entry[0].number):
        if both := set(mine) & set(changed):
            yield OtherPullRequest(
                mark=f"{mark}{other.number}",
                url=other.url,
                author=other.author,
                topics=tuple(sorted(PurePosixPath(file).stem for file in both)),
            )

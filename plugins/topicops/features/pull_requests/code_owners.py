"""The file CODEOWNERS of GitHub and GitLab: who must review which file of topics."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from topicops.edges.durable_files import write_atomically
from topicops.edges.specs.git import folder_in_repository
from topicops.edges.specs.open_files import shown_folder
from topicops.edges.specs.reader import read_tree
from topicops.features.pull_requests.branches import reviewers_in
from topicops.flow.runs.run import now
from topicops.model.errors import SpecFileError, UsageError
from topicops.steps.specs.validate import view_of

BEGIN = "# topicops: begin (written by `topicops ci codeowners`; edit topics/owners.yaml instead)"
END = "# topicops: end"


def code_owners_text(owners: Mapping[str, str], reviewers: Mapping[str, tuple[str, ...]], *, folder: str) -> str:
    """A line for each domain, and one for each topic whose owner is not the domain's most frequent one.

    Args:
        owners: Owner by file, relative to the folder of topics: ``payments/payments.orders.yaml``.
        reviewers: Logins and teams by owner. An owner without any gives a comment, and its files no reviewers.
        folder: Of the topics, from the repository's root.

    Source: docs.github.com, "About code owners": the last line that matches a file counts.
    """
    return "\n".join([BEGIN, *_lines(owners, reviewers, folder), END]) + "\n"


def _lines(owners: Mapping[str, str], reviewers: Mapping[str, tuple[str, ...]], folder: str) -> Iterator[str]:
    for owner in sorted(set(owners.values()) - {name for name, named in reviewers.items() if named}):
        yield f"# {owner} has no reviewers in {folder}/owners.yaml"
    by_domain: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for file, owner in owners.items():
        by_domain[file.partition("/")[0]][file] = owner
    for domain, files in sorted(by_domain.items()):
        usual = min(Counter(files.values()).items(), key=lambda entry: (-entry[1], entry[0]))[0]
        yield _line(f"/{folder}/{domain}/", usual, reviewers)
        yield from (_line(f"/{folder}/{f}", owner, reviewers) for f, owner in sorted(files.items()) if owner != usual)


def _line(path: str, owner: str, reviewers: Mapping[str, tuple[str, ...]]) -> str:
    names = " ".join(f"@{name}" for name in reviewers.get(owner, ()))
    escaped = path.replace(" ", "\\ ")
    return f"{escaped} {names}".rstrip()


def with_our_lines(text: str, ours: str) -> str:
    """The file with our lines renewed, and all others as they are; our lines come last where there were none.

    Raises:
        UsageError: One of the two marks is missing, or stands twice.
    """
    counts = text.count(f"{BEGIN}\n"), text.count(f"{END}\n")
    if counts == (0, 0):
        return f"{text.rstrip()}\n\n{ours}".lstrip("\n")
    before, _, rest = text.partition(f"{BEGIN}\n")
    _, found, after = rest.partition(f"{END}\n")
    if counts != (1, 1) or not found:
        raise UsageError(f"the lines {BEGIN!r} and {END!r} must stand there once, in this order: correct them by hand")
    return f"{before}{ours}{after}"


def code_owners_of(topics: Path) -> str:
    """The lines for all topics whose files can be read.

    Raises:
        UsageError: There is no such folder, or it is the repository's root.
    """
    tree, shown = read_tree(topics), shown_folder(topics)
    found = view_of(tree, "", now()).topics
    owners = {topic.file.removeprefix(shown): topic.metadata.get("owner", str) or "" for topic in found}
    return code_owners_text(owners, reviewers_in(tree), folder=folder_in_repository(topics))


def renew_code_owners(file: Path, ours: str, *, check: bool) -> bool:
    """Whether the file had other lines of ours; with ``check`` it stays so.

    Raises:
        UsageError: The marks around our lines are damaged.
        SpecFileError: The disk refuses.
    """
    try:
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        after = with_our_lines(before, ours)
        if before != after and not check:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, after.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise SpecFileError(f"{os.fspath(file)}: cannot be written: {error}") from error
    return before != after

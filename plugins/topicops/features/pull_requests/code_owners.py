"""CODEOWNERS by the files of topics."""

from __future__ import annotations

import os
from pathlib import Path

from topicops.edges.durable_files import write_atomically
from topicops.edges.specs.git import folder_in_repository
from topicops.edges.specs.open_files import shown_folder
from topicops.edges.specs.reader import read_tree
from topicops.features.pull_requests.branches import reviewers_in
from topicops.features.pull_requests.code_owners_text import code_owners_text, with_our_lines
from topicops.flow.runs.run import now
from topicops.model.errors import SpecFileError
from topicops.steps.specs.validate import view_of


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

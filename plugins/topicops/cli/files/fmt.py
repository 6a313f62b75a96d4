"""``topicops fmt``: every file in the one way to write it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicops.cli.output import print_error, print_result
from topicops.model.exit_status import ExitStatus
from topicops.model.printable import printable

if TYPE_CHECKING:
    from topicops.model.specs.document import Document


def fmt_command(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The folder of specs, or one file of it.")] = Path(
        "topics"
    ),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 and list the files that would change.")
    ] = False,
) -> None:
    """Write every file in one way: order, spelling, indentation. What it says and its comments stay. No connection."""
    from topicops.edges.specs.reader import read_tree
    from topicops.edges.specs.writer import replace_text, shown
    from topicops.steps.specs.validate import validate

    topics = path.parent.parent if path.is_file() else path
    only = shown(path) if path.is_file() else None
    tree = read_tree(topics)
    problems = {
        found.file: found
        for found in reversed(validate(tree, environment=None, now=datetime.now(UTC)).diagnostics)
        if found.is_error and only in (None, found.file)
    }
    documents = [document for document in tree.documents if only in (None, document.file)]
    changed = {}
    for document in documents:
        if document.file not in problems and (edit := _edit(document)) is not None:
            changed[document.file] = edit
    for file, (before, after) in changed.items():
        if not check:
            replace_text(Path(file), after, before=before)
        print_result(printable(file))
    for file, found in sorted(problems.items()):
        print_error(f"left alone: {file}:{found.line}: {found.code}: {found.summary}")
    print_error(_summary(len(changed), len(documents), len(problems), check=check))
    if check and changed:
        raise typer.Exit(ExitStatus.ERROR)


def _edit(document: Document) -> tuple[str, str] | None:
    """The text as it is and as it is to be; None where both are the same."""
    from topicops.edges.specs.reader import ROOM_FOR_EXCEPTIONS, regular_text
    from topicops.edges.specs.writer import node_of
    from topicops.steps.authoring.formatting import formatted

    room = ROOM_FOR_EXCEPTIONS if document.kind == "Exceptions" else 1
    before = regular_text(Path(document.file), room=room)
    if before is None:
        return None
    after = formatted(before, document.kind, lambda text: node_of(text, room=room))
    return None if after == before else (before, after)


def _summary(changed: int, files: int, problems: int, *, check: bool) -> str:
    rest = f", {problems} left alone" if problems else ""
    return f"{changed} of {files} file(s) {'would change' if check else 'changed'}{rest}"

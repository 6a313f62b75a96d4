"""``topicops retire``: a spec becomes a tombstone, the only way in which a topic is deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicops.cli.cluster.plan import TopicsOption
from topicops.cli.output import print_result
from topicops.model.errors import UsageError
from topicops.model.printable import printable

if TYPE_CHECKING:
    from topicops.model.specs.document import Document, Tree


def retire_command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    reason: Annotated[str, typer.Option("--reason", help="Why it is to go; a reviewer reads it.")],
    topics: TopicsOption = Path("topics"),
    not_before: Annotated[
        str | None, typer.Option("--not-before", help="The earliest time, as in 2030-01-31T12:00:00Z.")
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--environment", "-e", help="Read the topic's id there and name it; may be given again. Opens a connection."
        ),
    ] = None,
) -> None:
    """Turn a spec into a tombstone: what it says of the topic's owner stays, what it shall be goes."""
    from topicops.edges.specs.reader import read_tree, regular_text
    from topicops.edges.specs.writer import document_of, replace_text, shown
    from topicops.steps.authoring.new_spec import require_sound
    from topicops.steps.authoring.retire import Tombstone, tombstone_of

    if not reason.strip():
        raise UsageError("--reason: say why, as in: --reason 'Replaced by payments.orders-v2.'")
    earliest = None if not_before is None else _time(not_before)
    tree = read_tree(topics)
    document = _document(tree, topic)
    path = Path(document.file)
    text = regular_text(path)
    if text is None:
        raise UsageError(f"{document.file}: it cannot be read; `topicops validate` says why")
    below = f"{path.parent.name}/{path.name}"
    ids = _topic_ids(topic, topics, environment or [])
    tombstone = Tombstone(reason=reason, not_before=earliest, topic_ids=ids)
    edited = tombstone_of(document, below, text, tombstone, partial(document_of, topics))
    require_sound(tree, document_of(topics, below, edited), datetime.now(UTC))
    replace_text(path, edited, before=text)
    print_result(f"{printable(shown(path))} is a tombstone; the next plan deletes {printable(topic)}")


def _document(tree: Tree, topic: str) -> Document:
    found = [document for document in tree.documents if document.kind == "Topic" and document.stem == topic]
    if len(found) != 1:
        problem = "no file describes it" if not found else f"{found[0].file} and {found[1].file} describe it"
        raise UsageError(f"{topic}: {problem}")
    return found[0]


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise UsageError(f"--not-before {text!r}: write a time with its zone, like 2030-01-31T12:00:00Z")
    return found.astimezone(UTC)


def _topic_ids(topic: str, topics: Path, environments: list[str]) -> dict[str, str]:
    """The id of the live topic in each environment; without environments nothing is asked."""
    if not environments:
        return {}
    from topicops import flow
    from topicops.cli.runs import unrecorded_run

    return {name: flow.topic_id(unrecorded_run(name, topics), topic) for name in environments}

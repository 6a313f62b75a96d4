"""``topicops retire``: a spec becomes a tombstone, the only way in which a topic is deleted."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicops.cli.output import print_result
from topicops.cli.shared_options import TopicsOption
from topicops.model.errors import UsageError
from topicops.model.printable import printable
from topicops.model.times import in_utc

if TYPE_CHECKING:
    from topicops.steps.authoring.retire import Tombstone


def retire_command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    reason: Annotated[str, typer.Option("--reason", help="Why the topic is deleted; a reviewer reads it.")],
    topics: TopicsOption = Path("topics"),
    not_before: Annotated[
        str | None, typer.Option("--not-before", help="The earliest time, as in 2030-01-31T12:00:00Z.")
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--environment", "-e", help="Write the topic's id there into the file; may be repeated. Opens a connection."
        ),
    ] = None,
) -> None:
    """Turn a spec into a tombstone: the metadata stays, the lifecycle takes the place of the spec."""
    from topicops import flow
    from topicops.cli.runs import unrecorded_run
    from topicops.flow.spec_files import retire
    from topicops.steps.authoring.retire import Tombstone

    if not reason.strip():
        raise UsageError("--reason is empty: give one, as in: --reason 'Replaced by payments.orders-v2.'")
    earliest = None if not_before is None else _time(not_before)

    def tombstone() -> Tombstone:
        ids = {name: flow.topic_id(unrecorded_run(name, topics), topic) for name in environment or ()}
        return Tombstone(reason=reason, not_before=earliest, topic_ids=ids)

    file = retire(topics, topic, tombstone)
    print_result(f"{printable(file)} is a tombstone; the next plan deletes {printable(topic)}")


def _time(text: str) -> datetime:
    try:
        return in_utc(datetime.fromisoformat(text))
    except ValueError as error:
        raise UsageError(f"--not-before {text!r}: write a time with its zone, like 2030-01-31T12:00:00Z") from error

"""``topicops ci codeowners``: who must review which files, by the owners of the topics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_error, print_result
from topicops.cli.shared_options import TopicsOption
from topicops.model.exit_status import ExitStatus


def codeowners_command(
    topics: TopicsOption = Path("topics"),
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Renew the lines of topicops in this file.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="With --write: change nothing, fail if the file is not up to date.")
    ] = False,
) -> None:
    """Print a line for each folder and topic with its reviewers, as owners.yaml names them for the topic's owner."""
    from topicops.flow.pull_requests.code_owners import code_owners_of, renew_code_owners

    text = code_owners_of(topics)
    if write is None:
        print_result(text.rstrip("\n"))
        return
    is_new = renew_code_owners(write, text, check=check)
    if is_new and check:
        print_error(f"{write}: not up to date; run topicops ci codeowners --write {write}")
        raise typer.Exit(ExitStatus.ERROR)
    print_result(f"{write}: {'written' if is_new else 'is up to date'}")

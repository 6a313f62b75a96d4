"""``topicops ci comment`` and ``ci status``: the plan in the pull request, and the check beside its merge button."""

from __future__ import annotations

from typing import Annotated

import typer

from topicops.cli.ci.shared import FOLDER, FolderArgument, NumberOption, RepositoryOption
from topicops.cli.output import print_result, progress
from topicops.model.errors import ArtifactError, ForgeError
from topicops.model.exit_status import ExitStatus
from topicops.model.printable import plural


def comment_command(
    folder: FolderArgument = FOLDER, number: NumberOption = None, repository: RepositoryOption = None
) -> None:
    """Write what `ci plan` found into the pull request: one comment for each environment, edited on later runs."""
    from topicops.flow.pull_requests.commenting import post_comments
    from topicops.flow.pull_requests.places import conversation_about
    from topicops.flow.pull_requests.planning import read_planned

    planned = read_planned(folder)
    conversation = conversation_about(number or planned.summary.number, repository, progress=progress)
    written = post_comments(planned, conversation)
    print_result(f"{plural(written, 'environment')} in the comments of {conversation.name}")


def status_command(
    folder: FolderArgument = FOLDER,
    number: NumberOption = None,
    repository: RepositoryOption = None,
    unplanned: Annotated[
        str | None, typer.Option("--unplanned", help="There is no plan on purpose, for this reason.")
    ] = None,
    started: Annotated[bool, typer.Option("--started", help="The plan is being made: nobody may merge yet.")] = False,
) -> None:
    """Set the check and the label by the highest risk. A held change is neutral, with the way to approve it."""
    from topicops.flow.pull_requests.commenting import (
        set_check,
        set_failed_check,
        set_pending_check,
        set_unplanned_check,
    )
    from topicops.flow.pull_requests.places import conversation_about, job_page
    from topicops.flow.pull_requests.planning import read_planned
    from topicops.model.pull_requests.forge import CheckResult

    conversation = conversation_about(number, repository, progress=progress)
    try:
        if started:
            check = set_pending_check(conversation, url=job_page())
        elif unplanned:
            check = set_unplanned_check(unplanned, conversation, url=job_page())
        else:
            check = set_check(read_planned(folder), conversation, url=job_page())
    except (ArtifactError, ForgeError) as error:  # the check reports in any case, because a merge may wait for it
        check = set_failed_check(str(error), conversation, url=job_page())
    print_result(f"{check.result}: {check.title}")
    raise typer.Exit(ExitStatus.ERROR if check.result is CheckResult.FAILURE else ExitStatus.SUCCESS)

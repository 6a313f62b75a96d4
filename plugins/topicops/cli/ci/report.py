"""``topicops ci report``: what became of the changes, in the comments of the merged pull request."""

from __future__ import annotations

from topicops.cli.ci.shared import FOLDER, FolderArgument, RepositoryOption
from topicops.cli.output import print_result, progress


def report_command(folder: FolderArgument = FOLDER, repository: RepositoryOption = None) -> None:
    """Write what `ci trigger` saw into the pull request: applied, verified, held or failed, with links to the runs."""
    from topicops.flow.pull_requests.commenting import report_runs
    from topicops.flow.pull_requests.places import conversation_about, job_page
    from topicops.flow.pull_requests.triggering import read_runs

    runs = read_runs(folder)
    if runs.number is None:
        print_result("The commit came without a pull request; there is no comment to edit.")
        return
    conversation = conversation_about(runs.number, repository, progress=progress)
    check = report_runs(runs, conversation, url=job_page())
    print_result(f"{conversation.name}: {check.result}: {check.title}")

"""After the runs: write into the pull request what became of its changes, and tell the others that theirs are older."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from topicops.flow.pull_requests.commenting import (
    Comments,
    Conversation,
    edit_first_parts,
    open_beside,
    recorded_parts,
    write_parts,
)
from topicops.model.errors import ForgeError
from topicops.model.pull_requests.forge import Check, CheckResult
from topicops.model.pull_requests.planned import AfterMerge, CommentContent
from topicops.model.pull_requests.triggered import TriggeredRun, TriggeredRuns
from topicops.steps.pull_requests.checks import CHECK_NAME
from topicops.steps.pull_requests.overlaps import overlaps
from topicops.steps.reporting.pull_requests.comment_markdown import after_merge_parts, with_merged_note

_WRONG, _OPEN = frozenset({"failed", "not started"}), frozenset({"held", "waiting"})


def report_runs(runs: TriggeredRuns, conversation: Conversation, *, url: str = "") -> Check:
    """Edit the comments of the merged pull request, and set the check of its merge commit.

    Returns:
        The check: ``success`` if all is applied and verified, ``neutral`` if something waits, else ``failure``.
    """
    check = check_of_runs(runs, url=url)
    conversation.forge.set_check(runs.merge_commit, check)
    comments = conversation.comments()
    for run in runs.environments:
        _write_result(run, conversation, comments)
    try:
        _tell_others(runs, conversation)
    except ForgeError as error:  # of a pull request of others, which must not end the report of this one
        conversation.progress(f"Other open pull requests are not told of this merge: {error}")
    return check


def _write_result(run: TriggeredRun, conversation: Conversation, comments: Comments) -> None:
    """The record stays: where a run has failed, the job can be run again with the same approvals."""
    before, shown = comments.get((run.environment, 1)), conversation.read_record(comments, run.environment)
    render = partial(after_merge_parts, earlier=before.body if before else "")
    posted = write_parts(conversation, run.environment, render(_content(run)), comments)
    if shown:
        parts = recorded_parts(render, _content(run), shown, conversation, posted[0].updated_at)
        write_parts(conversation, run.environment, parts, {(run.environment, 1): posted[0]})


def _content(run: TriggeredRun) -> CommentContent:
    after = AfterMerge(result=run.result, state=run.state, sentence=run.sentence, run_url=run.url, commit=run.commit)
    return CommentContent(environment=run.environment, plan=None, after_merge=after)


def _tell_others(runs: TriggeredRuns, conversation: Conversation) -> None:
    """The comments of open pull requests on the same topics say that this one was merged, so their plans are older."""
    forge = conversation.forge
    this = conversation.pull_request
    files = {other: forge.changed_files(other.number) for other in open_beside(forge, this)}
    for other in overlaps(runs.topic_files, files, mark=forge.mark):
        talk = replace(conversation, number=int(other.mark.removeprefix(forge.mark)))
        note = partial(with_merged_note, mark=f"{forge.mark}{this.number}", url=this.url, topics=other.topics)
        edit_first_parts(talk, note)


def check_of_runs(runs: TriggeredRuns, *, url: str = "") -> Check:
    """Of the merge commit: one line for each environment."""
    states = {run.state for run in runs.environments}
    result = CheckResult.FAILURE if states & _WRONG else CheckResult.NEUTRAL if states & _OPEN else CheckResult.SUCCESS
    lines = [f"{run.environment}: {run.sentence}" for run in sorted(runs.environments, key=_gravest_first)]
    title = lines[0] if lines else "The merge changes no topic"
    return Check(name=CHECK_NAME, result=result, title=title[:250], summary="\n".join(f"- {t}" for t in lines), url=url)


def _gravest_first(run: TriggeredRun) -> int:
    ranks: Mapping[str, int] = {**dict.fromkeys(_WRONG, 0), **dict.fromkeys(_OPEN, 1)}
    return ranks.get(run.state, 2)

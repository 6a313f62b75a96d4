"""The check beside the merge button, the label of the highest risk, and the report after the merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topicops.features.pull_requests.comment_markdown import result_note
from topicops.features.pull_requests.commenting import Conversation, describe
from topicops.features.pull_requests.edges.forge import Check, CheckResult
from topicops.features.pull_requests.edges.git_trees import COMMIT
from topicops.features.pull_requests.values import CommentContent, PlannedPullRequest, ReviewState, TriggeredRuns
from topicops.model.plans.changes import GateWord
from topicops.model.printable import first_line_of, markdown, plural
from topicops.model.specs.environment import Risk

LABELS: Mapping[Risk, str] = {risk: f"topics:{risk}" for risk in Risk}
_WRONG, _OPEN = frozenset({"failed", "not started"}), frozenset({"held", "waiting"})
"""States of a run."""
_NO_REVIEW = ReviewState(reviewers=(), can_be_reviewed=False)


def set_plain_check(result: CheckResult, said: str, conversation: Conversation, *, commit: str = "") -> Check:
    """Set a check of one sentence on the newest commit of the branch, or on the one that is given.

    ``pending`` is set before anything is planned: else an earlier check of this commit would let it be merged.
    """
    check = Check(result=result, title=first_line_of(said), summary=markdown(said))
    return conversation.set_check(commit or conversation.pull_request.head_commit, check)


def set_unplanned_check(reason: str, conversation: Conversation) -> Check:
    """Set the check of a pull request that is not planned on purpose: neutral.

    A check belongs to a commit. That of another open pull request with the same commit stays, since that is planned.
    """
    head = conversation.pull_request.head_commit
    others = [pull for pull in conversation.forge.pull_requests_with(head) if pull.number != conversation.number]
    if any(pull.state == "open" and pull.head_commit == head and not pull.is_from_fork for pull in others):
        conversation.progress("The check stays as it is: it is that of another pull request with the same commit")
        return Check(result=CheckResult.NEUTRAL, title=first_line_of(reason))
    return set_plain_check(CheckResult.NEUTRAL, reason, conversation)


def set_check(planned: PlannedPullRequest, conversation: Conversation) -> Check:
    """Set the check on the newest commit of the branch, and the label of its risk."""
    summary = planned.summary
    if summary.problem:
        commit = summary.head_commit if COMMIT.fullmatch(summary.head_commit) else ""
        return set_plain_check(CheckResult.FAILURE, summary.problem, conversation, commit=commit)
    comments = conversation.our_comments(entry.environment for entry in summary.environments)
    contents = describe(planned, conversation, comments)
    check = conversation.set_check(summary.head_commit, check_of(contents, remarks=summary.remarks))
    if all(content.plan for content in contents):  # else the risk is not known, and the label of before stays
        conversation.forge.set_labels(conversation.number, labels_of(contents))
    return check


def check_of(contents: Sequence[CommentContent], *, remarks: Sequence[str] = ()) -> Check:
    """Make the check: ``failure`` if something cannot be done, ``neutral`` if something waits, else ``success``."""
    wrong = [line for content in contents for line in _wrong(content)]
    waiting = [*(line for content in contents for line in _waiting(content)), *remarks]
    result = CheckResult.FAILURE if wrong else CheckResult.NEUTRAL if waiting else CheckResult.SUCCESS
    count = sum(len(content.own_changes) for content in contents)
    where = ", ".join(content.entry.environment for content in contents if content.entry.own)
    well = f"{plural(count, 'change')} after the merge, in {where}" if count else "No topic changes"
    title = (wrong or waiting or [well])[0]
    lines = [f"- {markdown(line)}" for line in (*wrong, *waiting)] or [markdown(title)]
    return Check(result=result, title=title, summary="\n".join(lines))


def labels_of(contents: Sequence[CommentContent]) -> Mapping[str, bool]:
    """Give each of our labels, and whether it is the one of the highest risk; none is if nothing changes."""
    risks = [gated.change.risk for content in contents for gated in content.own_changes]
    highest = max(risks, key=lambda risk: risk.rank, default=None)
    return {label: risk is highest for risk, label in LABELS.items()}


def _wrong(content: CommentContent) -> Iterator[str]:
    name = content.entry.environment
    if content.entry.problem:
        yield f"{name}: {first_line_of(content.entry.problem)}"
    if blocked := content.own_blocked:
        reason = next(iter(blocked[0].reasons), "see the comment")
        yield f"{name}: {plural(len(blocked), 'topic')} blocked; {blocked[0].topic}: {reason}"


def _waiting(content: CommentContent) -> Iterator[str]:
    """Yield what will not run by itself after the merge, and who can let it run."""
    mine, name = content.own_changes, content.entry.environment
    states = [content.reviews.get(gated.digest, _NO_REVIEW) for gated in mine if gated.approvable]
    if waiting := [state for state in states if not state.approved_by]:
        reviewers = sorted({name for state in waiting if state.can_be_reviewed for name in state.reviewers})
        who = f"a review by {', '.join(reviewers)}, or " if reviewers else ""
        count = plural(len(waiting), "change")
        yield f"{name}: {count} held: {who}the question in Airflow after the merge lets them run"
    if final := [gated for gated in mine if gated.gate is GateWord.HELD and not gated.approvable]:
        yield f"{name}: {plural(len(final), 'change')} held by a limit that no approval lifts"
    if skipped := [gated for gated in mine if gated.gate is GateWord.SKIPPED]:
        reason = next(iter(skipped[0].reasons), "see the comment")
        yield f"{name}: {plural(len(skipped), 'change')} skipped: {reason}"


def report_runs(runs: TriggeredRuns, conversation: Conversation) -> Check:
    """Set the check of the merge commit, and write what became of the changes below their plans.

    Plan and record stay: where a run has failed, the job can be run again with the same approvals.
    """
    check = conversation.set_check(runs.merge_commit, check_of_runs(runs))
    comments = conversation.our_comments(run.environment for run in runs.environments)
    for run in runs.environments:
        comments[run.environment].write("note", result_note(run))
    return check


def check_of_runs(runs: TriggeredRuns) -> Check:
    """Make the check: ``success`` if all is applied and verified, ``neutral`` if something waits, else ``failure``."""
    states = {run.state for run in runs.environments}
    result = CheckResult.FAILURE if states & _WRONG else CheckResult.NEUTRAL if states & _OPEN else CheckResult.SUCCESS
    worst_first = sorted(runs.environments, key=lambda run: (run.state not in _WRONG, run.state not in _OPEN))
    lines = [f"{run.environment}: {run.sentence}" for run in worst_first]
    title = lines[0] if lines else "The merge changes no topic"
    return Check(result=result, title=title[:250], summary="\n".join(f"- {line}" for line in lines))

"""The check beside the merge button, and the label: how risky a pull request is, and what waits for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topicops.features.pull_requests.forge import Check, CheckResult
from topicops.features.pull_requests.values import CommentContent, ReviewState, TriggeredRun, TriggeredRuns
from topicops.model.plans.changes import GateWord
from topicops.model.printable import first_line_of, markdown, plural
from topicops.model.specs.environment import Risk

CHECK_NAME = "topicops"
_WRONG, _OPEN = frozenset({"failed", "not started"}), frozenset({"held", "waiting"})
"""States of a run."""
_NO_REVIEW = ReviewState(reviewers=(), can_be_reviewed=False)
LABELS: Mapping[Risk, str] = {risk: f"topics:{risk}" for risk in Risk}


def check_of(contents: Sequence[CommentContent], *, remarks: Sequence[str] = (), url: str = "") -> Check:
    """``failure`` where something cannot be planned or done, ``neutral`` where something waits, else ``success``.

    Args:
        contents: Of each environment that the pull request touches; none: it touches no topic.
        remarks: What a person has to know of the whole pull request, such as changed policy.
        url: Of the job.
    """
    wrong = [line for content in contents for line in _wrong(content)]
    waiting = [*(line for content in contents for line in _waiting(content)), *remarks]
    result = CheckResult.FAILURE if wrong else CheckResult.NEUTRAL if waiting else CheckResult.SUCCESS
    title = (wrong or waiting or [_all_well(contents)])[0]
    lines = [f"- {markdown(line)}" for line in (*wrong, *waiting)] or [markdown(title)]
    return Check(name=CHECK_NAME, result=result, title=title, summary="\n".join(lines), url=url)


def failed_check(problem: str, *, url: str = "") -> Check:
    """Of a pull request that could not be planned at all."""
    title = first_line_of(problem)
    return Check(name=CHECK_NAME, result=CheckResult.FAILURE, title=title, summary=markdown(problem), url=url)


def unplanned_check(reason: str, *, url: str = "") -> Check:
    """Of a pull request that is not planned on purpose."""
    title = first_line_of(reason)
    return Check(name=CHECK_NAME, result=CheckResult.NEUTRAL, title=title, summary=markdown(reason), url=url)


def pending_check(*, url: str = "") -> Check:
    """Of a pull request whose plan is being made."""
    return Check(name=CHECK_NAME, result=CheckResult.PENDING, title="The plan is being made", url=url)


def labels_of(contents: Sequence[CommentContent]) -> Mapping[str, bool]:
    """Each of our labels, and whether it is the one of the highest risk; none is if nothing changes."""
    risks = [gated.change.risk for content in contents for gated in content.own_changes]
    highest = max(risks, key=lambda risk: risk.rank, default=None)
    return {label: risk is highest for risk, label in LABELS.items()}


def _wrong(content: CommentContent) -> Iterator[str]:
    if content.problem:
        yield f"{content.environment}: {first_line_of(content.problem)}"
    if blocked := content.own_blocked:
        reasons = blocked[0].reasons[0] if blocked[0].reasons else "see the comment"
        yield f"{content.environment}: {plural(len(blocked), 'topic')} blocked; {blocked[0].topic}: {reasons}"


def _waiting(content: CommentContent) -> Iterator[str]:
    """What will not run by itself after the merge, and who can let it run."""
    mine = content.own_changes
    states = content.reviews
    open_ones = [g for g in mine if g.approvable and not states.get(g.digest, _NO_REVIEW).approved_by]
    if open_ones:
        reviewable = [states[g.digest] for g in open_ones if states.get(g.digest, _NO_REVIEW).can_be_reviewed]
        named = sorted({name for state in reviewable for name in state.reviewers})
        who = f"a review by {', '.join(named)}, or " if named else ""
        count = plural(len(open_ones), "change")
        yield f"{content.environment}: {count} held: {who}the question in Airflow after the merge lets them run"
    if final := [g for g in mine if g.gate is GateWord.HELD and not g.approvable]:
        yield f"{content.environment}: {plural(len(final), 'change')} held by a limit that no approval lifts"
    if skipped := [g for g in mine if g.gate is GateWord.SKIPPED]:
        reason = skipped[0].reasons[0] if skipped[0].reasons else "see the comment"
        yield f"{content.environment}: {plural(len(skipped), 'change')} skipped: {reason}"


def _all_well(contents: Sequence[CommentContent]) -> str:
    count = sum(len(content.own_changes) for content in contents)
    if not count:
        return "No topic changes"
    return f"{plural(count, 'change')} after the merge, in {', '.join(c.environment for c in contents if c.own)}"


def check_of_runs(runs: TriggeredRuns, *, url: str = "") -> Check:
    """Make the check of a merge commit, with a line for each environment.

    ``success`` if all is applied and verified, ``neutral`` if something waits, else ``failure``.
    """
    states = {run.state for run in runs.environments}
    result = CheckResult.FAILURE if states & _WRONG else CheckResult.NEUTRAL if states & _OPEN else CheckResult.SUCCESS
    lines = [f"{run.environment}: {run.sentence}" for run in sorted(runs.environments, key=_gravest_first)]
    title = lines[0] if lines else "The merge changes no topic"
    return Check(name=CHECK_NAME, result=result, title=title[:250], summary="\n".join(f"- {t}" for t in lines), url=url)


def _gravest_first(run: TriggeredRun) -> int:
    ranks: Mapping[str, int] = {**dict.fromkeys(_WRONG, 0), **dict.fromkeys(_OPEN, 1)}
    return ranks.get(run.state, 2)

"""Comments, checks and labels of a pull request, on its forge."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

from topicops.features.pull_requests.comment_markdown import (
    NOTE,
    marked,
    no_plan_note,
    plan_comment,
    result_note,
)
from topicops.features.pull_requests.edges.surroundings import open_forge, surroundings_about
from topicops.features.pull_requests.forge import Authors, Check, CheckResult, Comment, Forge, ForgeError, PullRequest
from topicops.features.pull_requests.planning import PlannedPullRequest
from topicops.features.pull_requests.reviewed import Members, ReviewFacts, review_state
from topicops.features.pull_requests.shown_record import (
    already_shown,
    read_record,
    record_line,
    shown_from,
    with_record,
)
from topicops.features.pull_requests.signed_reviews import checked_key
from topicops.features.pull_requests.touched import overlaps
from topicops.features.pull_requests.values import (
    About,
    CommentContent,
    OtherPullRequest,
    PlannedEnvironment,
    ReviewState,
    ShownByDigest,
    TriggeredRuns,
)
from topicops.model.errors import UsageError
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import GatedChange
from topicops.model.printable import first_line_of, markdown, plural
from topicops.model.runs.results import REVIEW_KEY
from topicops.model.specs.environment import Risk

MOST_OPEN = 50
"""Number of other open pull requests that are looked at; each costs a request, and a job has a thousand an hour."""
MOST_REVIEWED = 400
"""Number of changes of one environment that a review may approve: each takes sixty characters of the record."""
NO_REVIEWS = ReviewFacts(reviews=(), authors=Authors(logins=frozenset()), reviewers={}, members=lambda _: frozenset())
"""Facts where no change needs a review."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_WRONG, _OPEN = frozenset({"failed", "not started"}), frozenset({"held", "waiting"})
"""States of a run."""
_NO_REVIEW = ReviewState(reviewers=(), can_be_reviewed=False)
LABELS: Mapping[Risk, str] = {risk: f"topics:{risk}" for risk in Risk}


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """One pull request on its forge, and the key that signs what we say there."""

    forge: Forge
    number: int
    key: bytes | None
    """Key of the signatures. None means that no comment has a record, so no review counts."""
    progress: Callable[[str], None]
    job_url: str = ""
    """Page of this job, to which a check leads; empty outside of a CI."""

    @property
    def name(self) -> str:
        """Name such as ``acme/topics#12``."""
        return f"{self.forge.repository}{self.forge.mark}{self.number}"

    @cached_property
    def pull_request(self) -> PullRequest:
        """Pull request as the forge has it now. Raises ``ForgeError``."""
        return self.forge.pull_request(self.number)

    def set_check(self, commit: str, check: Check) -> Check:
        self.forge.set_check(commit, replace(check, url=self.job_url))
        return check

    def our_comments(self, environments: Iterable[str]) -> dict[str, OurComments]:
        """Read our comments, by environment: of these, and of all others that have a comment.

        Of two comments with the same marker, the first counts.
        """
        found = defaultdict[str, dict[int, Comment]](dict)
        for comment in self.forge.own_comments(self.number):
            if (place := marked(comment.body)) is not None:
                environment, part = place
                found[environment].setdefault(part, comment)
        return {name: OurComments(self, name, found[name]) for name in dict.fromkeys((*found, *environments))}

    def review_facts(self, reviewers: Mapping[str, tuple[str, ...]]) -> ReviewFacts:
        """Ask for reviews and authors; without any review where the forge does not give all of both."""
        try:
            reviews, authors, problem = self.forge.reviews(self.number), self.forge.authors(self.number), ""
        except ForgeError as error:
            reviews, authors, problem = (), Authors(logins=frozenset()), f"No review counts now: {error}"
            self.progress(problem)
        return ReviewFacts(
            reviews=reviews, authors=authors, reviewers=reviewers, members=self._members(), problem=problem
        )

    def _members(self) -> Members:
        @cache
        def members(team: str) -> frozenset[str] | None:
            try:
                return self.forge.members(team)
            except ForgeError as error:
                self.progress(f"The members of {team} are not known, so no review counts for their topics: {error}")
                return None

        return members


def conversation_about(number: int | None, repository: str | None, *, progress: Callable[[str], None]) -> Conversation:
    """The pull request that the command names, else the CI's.

    Raises:
        UsageError: Neither is known, or there is no token.
    """
    found = surroundings_about(repository)
    number = number or found.number
    if number is None:
        raise UsageError("name the pull request: --number; the CI's variables do not")
    return Conversation(
        forge=open_forge(found, os.environ),
        number=number,
        key=checked_key(os.environ.get(REVIEW_KEY)),
        progress=progress,
        job_url=found.job_url,
    )


@dataclass(frozen=True)
class OurComments:
    """Our comments about one environment: the parts of its plan, and the note that follows them."""

    conversation: Conversation
    environment: str
    by_part: Mapping[int, Comment]

    @property
    def about(self) -> About:
        return About(
            repository=self.conversation.forge.repository,
            pull_request=self.conversation.number,
            base_branch=self.conversation.pull_request.base_branch,
            environment=self.environment,
        )

    def record(self) -> ShownByDigest:
        """Read what the plan's comments have shown, if the record is ours, and nobody has changed the comments."""
        key, plan = self.conversation.key, [self.by_part[part] for part in sorted(self.by_part) if part != NOTE]
        if not plan or key is None:
            return {}
        texts = [comment.body for comment in plan]
        return read_record(texts, key, self.about, updated_at=plan[0].updated_at) or {}

    def write_plan(self, parts: Sequence[str]) -> OurComments:
        """Edit the comments that are there, add those that are missing, and remove all others, the note too."""
        posted = {number: self._write(number, body) for number, body in enumerate(parts, 1)}
        self._remove(part for part in self.by_part if part not in posted)
        return replace(self, by_part=posted)

    def write_note(self, body: str) -> None:
        """Write the comment that follows the plan, whose comments and record stay as they are."""
        self._write(NOTE, body)

    def remove(self) -> None:
        self._remove(self.by_part)

    def _write(self, part: int, body: str) -> Comment:
        forge, number, there = self.conversation.forge, self.conversation.number, self.by_part.get(part)
        return forge.edit_comment(number, there.id, body) if there else forge.add_comment(number, body)

    def _remove(self, parts: Iterable[int]) -> None:
        for part in parts:
            self.conversation.forge.remove_comment(self.conversation.number, self.by_part[part].id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What is to be said about one environment, and what our comments have said so far."""

    content: CommentContent
    comments: OurComments
    owners: Mapping[str, str]
    """Owner of each change that a review may approve, by the digest of the change."""
    earlier: ShownByDigest
    """What the comments have shown all the while until now."""


def describe(
    planned: PlannedPullRequest,
    conversation: Conversation,
    comments: Mapping[str, OurComments],
    others: Sequence[OtherPullRequest] = (),
) -> tuple[Described, ...]:
    """Describe each environment, with the reviews of its held changes.

    Args:
        comments: By environment, those of now.
        others: Open pull requests on the same topics.
    """
    summary, has_key = planned.summary, conversation.key is not None
    held = {entry.environment: _held(planned, entry) for entry in summary.environments}
    facts = conversation.review_facts(summary.reviewers) if any(held.values()) else NO_REVIEWS
    remarks = (*summary.remarks, *([facts.problem] if facts.problem else []))
    found = []
    for entry in summary.environments:
        name, ours, rules = entry.environment, comments[entry.environment], entry.rules
        owners = {gated.digest: entry.owners.get(gated.change.topic, "") for gated in held[name]}
        shown = already_shown(ours.record(), owners)
        content = CommentContent(
            environment=name,
            plan=planned.plans.get(name),
            problem=entry.problem,
            own=frozenset(entry.own),
            base_commit=summary.base_commit,
            head_commit=summary.head_commit,
            reviews={
                gated.digest: review_state(
                    gated, owners[gated.digest], shown.get(gated.digest), facts, rules, has_key=has_key
                )
                for gated in held[name]
                if rules
            },
            shown_since={digest: known.since for digest, known in shown.items()},
            others=tuple(other for other in others if set(other.topics) & set(entry.own)),
            remarks=remarks,
        )
        found.append(Described(content=content, comments=ours, owners=owners, earlier=shown))
    return tuple(found)


def _held(planned: PlannedPullRequest, entry: PlannedEnvironment) -> list[GatedChange]:
    """Choose those that a review of this pull request can be about: what was pending before had its own."""
    plan = planned.plans.get(entry.environment)
    found = [gated for gated in plan.changes if gated.approvable and gated.change.topic in entry.own] if plan else []
    return found[:MOST_REVIEWED]


def _others(planned: PlannedPullRequest, conversation: Conversation) -> tuple[OtherPullRequest, ...]:
    """Find open pull requests that touch the same topics, or none where the forge does not list them."""
    forge, mine = conversation.forge, planned.summary.topic_files
    if not mine:
        return ()
    try:
        files = {other: forge.changed_files(other.number) for other in _open_beside(forge, conversation.pull_request)}
    except ForgeError as error:
        conversation.progress(f"Other open pull requests on the same topics are not known: {error}")
        return ()
    return tuple(overlaps(mine, files, mark=forge.mark))


def _open_beside(forge: Forge, this: PullRequest) -> list[PullRequest]:
    """List the newest ones of this repository's own branches, in rising order: anybody can open many from a fork."""
    found = [pull for pull in forge.open_pull_requests(this.base_branch) if not pull.is_from_fork]
    return [other for other in found if other.number != this.number][-MOST_OPEN:]


# ---- comments ----


def post_comments(planned: PlannedPullRequest, conversation: Conversation) -> int:
    """Write one comment for each environment, or edit ours; those of environments that are no longer touched go.

    Where the newest commit has no plan, the comment with the last plan stays, so that its reviews still count
    afterwards, and a note follows it.

    Returns:
        The number of environments.
    """
    summary = planned.summary
    comments = conversation.our_comments(entry.environment for entry in summary.environments)
    if summary.problem:
        for name, ours in comments.items():
            ours.write_note(no_plan_note(CommentContent(environment=name, plan=None, problem=summary.problem)))
        return len(comments)
    for described in describe(planned, conversation, comments, _others(planned, conversation)):
        _post(described)
    known = {*summary.left_out, *(entry.environment for entry in summary.environments)}
    for name in comments.keys() - known:
        comments[name].remove()
    return len(summary.environments)


def _post(described: Described) -> None:
    """Write twice where changes are held: only once the forge has the text is it known since when it shows them."""
    content, ours = described.content, described.comments
    if content.plan is None:
        ours.write_note(no_plan_note(content))
        return
    posted = ours.write_plan(plan_comment(content, content.plan).parts)
    if recorded := _recorded(replace(described, comments=posted)):
        posted.write_plan(recorded)


def _recorded(described: Described) -> Sequence[str]:
    """Give the posted parts with a record, at the end of the first, of the held changes that they have a row for.

    Empty where they show none. Rows may be left out where there are too many, and the record takes some of the room.
    """
    content, ours, key = described.content, described.comments, described.comments.conversation.key
    if content.plan is None or key is None:
        return ()
    posted_at = ours.by_part[1].updated_at
    shown = shown_from(described.earlier, described.owners, head=content.head_commit, posted_at=posted_at)
    while shown:
        line = partial(record_line, shown, key, ours.about, posted_at=posted_at)
        since = {digest: known.since for digest, known in shown.items()}
        comment = plan_comment(replace(content, shown_since=since, record=line(texts=())), content.plan)
        if not shown.keys() & comment.left_out:
            first, *others = comment.parts
            return with_record(first, line(texts=comment.parts)), *others
        shown = {digest: known for digest, known in shown.items() if digest not in comment.left_out}
    return ()


def report_runs(runs: TriggeredRuns, conversation: Conversation) -> Check:
    """Write what became of the changes below their plans, and set the check of the merge commit.

    Plan and record stay: where a run has failed, the job can be run again with the same approvals.
    """
    check = conversation.set_check(runs.merge_commit, check_of_runs(runs))
    comments = conversation.our_comments(run.environment for run in runs.environments)
    for run in runs.environments:
        comments[run.environment].write_note(result_note(run))
    return check


# ---- check and labels ----


def set_failed_check(problem: str, conversation: Conversation, *, commit: str = "") -> Check:
    """Of a pull request that could not be planned; the newest commit of its branch, where none is given."""
    check = Check(result=CheckResult.FAILURE, title=first_line_of(problem), summary=markdown(problem))
    return conversation.set_check(commit or conversation.pull_request.head_commit, check)


def set_pending_check(conversation: Conversation) -> Check:
    """Set before anything is planned: else an earlier check of this commit would let it be merged."""
    check = Check(result=CheckResult.PENDING, title="The plan is being made")
    return conversation.set_check(conversation.pull_request.head_commit, check)


def set_unplanned_check(reason: str, conversation: Conversation) -> Check:
    """Of a pull request that is not planned on purpose: neutral.

    A check belongs to a commit. That of another open pull request with the same commit stays, since that is planned.
    """
    this = conversation.pull_request
    check = Check(result=CheckResult.NEUTRAL, title=first_line_of(reason), summary=markdown(reason))
    others = conversation.forge.open_pull_requests_of(this.head_commit)
    if any(other.number != this.number and not other.is_from_fork for other in others):
        conversation.progress("The check stays as it is: it is that of another pull request with the same commit")
        return check
    return conversation.set_check(this.head_commit, check)


def set_check(planned: PlannedPullRequest, conversation: Conversation) -> Check:
    """The check on the newest commit of the branch, and the label of its risk."""
    summary = planned.summary
    if summary.problem:
        commit = summary.head_commit if _COMMIT.fullmatch(summary.head_commit) else ""
        return set_failed_check(summary.problem, conversation, commit=commit)
    comments = conversation.our_comments(entry.environment for entry in summary.environments)
    contents = [described.content for described in describe(planned, conversation, comments)]
    check = conversation.set_check(summary.head_commit, check_of(contents, remarks=summary.remarks))
    if all(content.plan for content in contents):  # else the risk is not known, and the label of before stays
        conversation.forge.set_labels(conversation.number, labels_of(contents))
    return check


def check_of(contents: Sequence[CommentContent], *, remarks: Sequence[str] = ()) -> Check:
    """``failure`` where something cannot be planned or done, ``neutral`` where something waits, else ``success``.

    Args:
        contents: Of each environment that the pull request touches; none: it touches no topic.
        remarks: What a person has to know of the whole pull request, such as changed policy.
    """
    wrong = [line for content in contents for line in _wrong(content)]
    waiting = [*(line for content in contents for line in _waiting(content)), *remarks]
    result = CheckResult.FAILURE if wrong else CheckResult.NEUTRAL if waiting else CheckResult.SUCCESS
    title = (wrong or waiting or [_all_well(contents)])[0]
    lines = [f"- {markdown(line)}" for line in (*wrong, *waiting)] or [markdown(title)]
    return Check(result=result, title=title, summary="\n".join(lines))


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


def check_of_runs(runs: TriggeredRuns) -> Check:
    """Make the check of a merge commit, with a line for each environment.

    ``success`` if all is applied and verified, ``neutral`` if something waits, else ``failure``.
    """
    states = {run.state for run in runs.environments}
    result = CheckResult.FAILURE if states & _WRONG else CheckResult.NEUTRAL if states & _OPEN else CheckResult.SUCCESS
    lines = [
        f"{run.environment}: {run.sentence}"
        for run in sorted(runs.environments, key=lambda run: (run.state not in _WRONG, run.state not in _OPEN))
    ]
    title = lines[0] if lines else "The merge changes no topic"
    return Check(result=result, title=title[:250], summary="\n".join(f"- {t}" for t in lines))

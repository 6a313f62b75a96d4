"""Comments, checks and labels of a pull request, on its forge."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

from topicops.flow.pull_requests.planning import PlannedPullRequest
from topicops.model.errors import ForgeError
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.pull_requests.forge import Check, Comment, Forge, PullRequest
from topicops.model.pull_requests.planned import CommentContent, OtherPullRequest, ReviewState
from topicops.model.pull_requests.pull_request_plan import PlannedEnvironment
from topicops.model.pull_requests.shown import ShownByDigest
from topicops.steps.pull_requests.checks import check_of, failed_check, labels_of, unplanned_check
from topicops.steps.pull_requests.overlaps import overlaps
from topicops.steps.pull_requests.reviewed import Members, ReviewFacts, review_states
from topicops.steps.pull_requests.shown_record import About, already_shown, read_record, record_line, shown_from
from topicops.steps.reporting.pull_requests.comment_markdown import (
    comment_parts,
    marked,
    shows_a_plan,
    with_other,
    with_problem,
)

MOST_OPEN = 100
"""How many other open pull requests are looked at; each costs a request."""
_NOTHING_SHOWN: ShownByDigest = {}
NO_REVIEWS = ReviewFacts(reviews=(), authors=frozenset(), reviewers={}, members=lambda _: frozenset())
"""Where nothing needs one."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """One pull request on its forge, and the key that signs what we say there."""

    forge: Forge
    number: int
    key: bytes | None
    progress: Callable[[str], None]

    @property
    def name(self) -> str:
        """``acme/topics#12``."""
        return f"{self.forge.repository}{self.forge.mark}{self.number}"

    @cached_property
    def pull_request(self) -> PullRequest:
        """As the forge has it now. Raises ``ForgeError``."""
        return self.forge.pull_request(self.number)

    def comments(self) -> Mapping[tuple[str, int], Comment]:
        """Our comments by environment and part; of two with the same marker the first."""
        found: dict[tuple[str, int], Comment] = {}
        for comment in self.forge.own_comments(self.number):
            if (place := marked(comment.body)) is not None:
                found.setdefault(place, comment)
        return found

    def read_record(self, comment: Comment | None, environment: str) -> ShownByDigest:
        """What the first part of our comment showed, if its record is ours and unchanged."""
        if comment is None or self.key is None:
            return _NOTHING_SHOWN
        return read_record(comment.body, self.key, self.about(environment)) or _NOTHING_SHOWN

    def about(self, environment: str) -> About:
        return About(
            repository=self.forge.repository,
            pull_request=self.number,
            base_branch=self.pull_request.base_branch,
            environment=environment,
        )

    def review_facts(self, reviewers: Mapping[str, tuple[str, ...]]) -> ReviewFacts:
        """Without any review where the forge does not give all reviews and all authors."""
        try:
            reviews, authors, problem = self.forge.reviews(self.number), self.forge.authors(self.number), ""
        except ForgeError as error:
            reviews, authors, problem = (), frozenset[str](), f"No review counts now: {error}"
            self.progress(problem)
        return ReviewFacts(
            reviews=reviews, authors=authors, reviewers=reviewers, members=self._members(), problem=problem
        )

    def _members(self) -> Members:
        @cache
        def members(team: str) -> frozenset[str]:
            try:
                return self.forge.members(team)
            except ForgeError as error:
                self.progress(f"The members of {team} are not known, so no review counts as theirs: {error}")
                return frozenset()

        return members


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What is to be said about each environment, and what our comments have said so far."""

    contents: tuple[CommentContent, ...]
    earlier: Mapping[str, ShownByDigest] = field(default_factory=dict)
    """By environment, what its comment has shown all the while until now."""
    owners: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By environment, the owner of each held change, by digest."""
    others: tuple[OtherPullRequest, ...] = ()
    """Open ones that touch the same files of topics, in whatever environment."""


def describe(planned: PlannedPullRequest, conversation: Conversation) -> Described:
    """Ask the forge for reviews, and for other open pull requests on the same topics."""
    summary, comments = planned.summary, conversation.comments()
    held = {entry.environment: _held(planned.plans.get(entry.environment), entry.own) for entry in summary.environments}
    facts = conversation.review_facts(summary.reviewers) if any(held.values()) else NO_REVIEWS
    others = _others(planned, conversation)
    remarks = (*summary.remarks, *([facts.problem] if facts.problem else []))
    contents, earlier, owners = list[CommentContent](), dict[str, ShownByDigest](), dict[str, Mapping[str, str]]()
    for entry in summary.environments:
        name, plan = entry.environment, planned.plans.get(entry.environment)
        owners[name] = {gated.digest: entry.owners.get(gated.change.topic, "") for gated in held[name]}
        shown = already_shown(conversation.read_record(comments.get((name, 1)), name), owners[name])
        earlier[name] = shown
        contents.append(
            CommentContent(
                environment=name,
                plan=plan,
                problem=entry.problem,
                own=frozenset(entry.own),
                base_commit=summary.base_commit,
                head_commit=summary.head_commit,
                reviews=_states(entry, held[name], shown, facts, conversation),
                shown_since={digest: known.since for digest, known in shown.items()},
                others=tuple(other for other in others if set(other.topics) & set(entry.own)),
                remarks=remarks,
            )
        )
    return Described(contents=tuple(contents), earlier=earlier, owners=owners, others=others)


def _held(plan: Plan | None, own: Collection[str]) -> list[GatedChange]:
    """Those that a review of this pull request can be about: what was pending before had its own."""
    return [gated for gated in plan.changes if gated.approvable and gated.change.topic in own] if plan else []


def _states(
    entry: PlannedEnvironment,
    held: Sequence[GatedChange],
    shown: ShownByDigest,
    facts: ReviewFacts,
    conversation: Conversation,
) -> Mapping[str, ReviewState]:
    if entry.rules is None:
        return {}
    has_key = conversation.key is not None
    return review_states(held, entry.owners, shown, facts, entry.rules, has_key=has_key)


def _others(planned: PlannedPullRequest, conversation: Conversation) -> tuple[OtherPullRequest, ...]:
    """Open pull requests that touch the same topics, or none where the forge does not tell."""
    forge, mine = conversation.forge, planned.summary.topic_files
    if not mine:
        return ()
    try:
        files = {other: forge.changed_files(other.number) for other in open_beside(forge, conversation.pull_request)}
    except ForgeError as error:
        conversation.progress(f"Other open pull requests on the same topics are not known: {error}")
        return ()
    return tuple(overlaps(mine, files, mark=forge.mark))


def open_beside(forge: Forge, this: PullRequest) -> list[PullRequest]:
    """The newest ones, in rising order."""
    return [other for other in forge.open_pull_requests(this.base_branch) if other.number != this.number][-MOST_OPEN:]


# ---- comments ----


def post_comments(planned: PlannedPullRequest, conversation: Conversation) -> Described:
    """Write one comment for each environment, or edit ours; those of environments that are no longer touched go.

    A comment that shows a plan keeps it while there is no newer one, so that its reviews still count afterwards.
    """
    if problem := planned.summary.problem:
        edit_first_parts(conversation, partial(with_problem, problem=problem))
        return Described(contents=())
    described = describe(planned, conversation)
    comments = conversation.comments()
    for content in described.contents:
        before = comments.get((content.environment, 1))
        if content.plan is None and before is not None and shows_a_plan(before.body):
            conversation.forge.edit_comment(conversation.number, before.id, with_problem(before.body, content.problem))
        else:
            _post(content, described, conversation, comments)
    _tell_others(described.others, conversation)
    known = {*planned.summary.left_out, *(content.environment for content in described.contents)}
    for (environment, _), comment in comments.items():
        if environment not in known:
            conversation.forge.remove_comment(conversation.number, comment.id)
    return described


def _post(
    content: CommentContent,
    described: Described,
    conversation: Conversation,
    comments: Mapping[tuple[str, int], Comment],
) -> None:
    """Twice if it shows new changes: only once the forge has the text is it known since when it shows them."""
    name, key = content.environment, conversation.key
    earlier, owners = described.earlier[name], described.owners[name]
    posted = write_parts(conversation, name, _recorded(content, earlier, conversation), comments)
    if key is None:
        return
    in_sight = {digest: owner for digest, owner in owners.items() if _is_named(digest, posted)}
    shown = shown_from(earlier, in_sight, posted_at=posted[0].updated_at)
    if shown != earlier:
        since = {digest: known.since for digest, known in shown.items()}
        parts = {(name, part): comment for part, comment in enumerate(posted, 1)}
        write_parts(conversation, name, _recorded(replace(content, shown_since=since), shown, conversation), parts)


def _tell_others(others: Sequence[OtherPullRequest], conversation: Conversation) -> None:
    """The comments of open pull requests on the same topics name this one."""
    if not others:
        return
    forge, this = conversation.forge, conversation.pull_request
    for other in others:
        number = int(other.mark.removeprefix(forge.mark))
        here = OtherPullRequest(
            mark=f"{forge.mark}{this.number}", url=this.url, author=this.author, topics=other.topics
        )
        edit_first_parts(replace(conversation, number=number), partial(with_other, other=here))


def edit_first_parts(conversation: Conversation, edited: Callable[[str], str]) -> None:
    """Edit the first comment about each environment, where that changes it."""
    for (_, part), comment in conversation.comments().items():
        if part == 1 and (body := edited(comment.body)) != comment.body:
            conversation.forge.edit_comment(conversation.number, comment.id, body)


def _is_named(digest: str, posted: Sequence[Comment]) -> bool:
    """A review is about what the comments name; they may leave out changes of which there are too many."""
    return any(digest[:12] in comment.body for comment in posted)


def _recorded(content: CommentContent, shown: ShownByDigest, conversation: Conversation) -> tuple[str, ...]:
    if conversation.key is None or not shown:
        return comment_parts(content)
    line = record_line(shown, conversation.key, conversation.about(content.environment))
    return comment_parts(replace(content, record=line))


def write_parts(
    conversation: Conversation,
    environment: str,
    parts: Sequence[str],
    comments: Mapping[tuple[str, int], Comment],
) -> list[Comment]:
    """Edit the comments that are there, add those that are missing, remove those that are too many."""
    forge, number = conversation.forge, conversation.number
    posted = []
    for part, body in enumerate(parts, 1):
        there = comments.get((environment, part))
        posted.append(forge.edit_comment(number, there.id, body) if there else forge.add_comment(number, body))
    for (name, part), comment in comments.items():
        if name == environment and part > len(parts):
            forge.remove_comment(number, comment.id)
    return posted


# ---- check and labels ----


def set_check_without_plan(reason: str, conversation: Conversation, commit: str, *, url: str, failed: bool) -> Check:
    """The check of a commit that was not planned: a failure, or neutral where that is on purpose."""
    check = failed_check(reason, url=url) if failed else unplanned_check(reason, url=url)
    conversation.forge.set_check(commit, check)
    return check


def set_check(planned: PlannedPullRequest, conversation: Conversation, *, url: str = "") -> Check:
    """The check on the newest commit of the branch, and the label of its risk."""
    summary = planned.summary
    if summary.problem:
        is_commit = _COMMIT.fullmatch(summary.head_commit) is not None
        commit = summary.head_commit if is_commit else conversation.pull_request.head_commit
        return set_check_without_plan(summary.problem, conversation, commit, url=url, failed=True)
    contents = describe(planned, conversation).contents
    check = check_of(contents, remarks=summary.remarks, url=url)
    conversation.forge.set_check(summary.head_commit, check)
    if all(content.plan for content in contents):  # else the risk is not known, and the label of before stays
        conversation.forge.set_labels(conversation.number, labels_of(contents))
    return check

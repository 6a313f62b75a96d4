"""Comments, checks and labels of a pull request, on its forge."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property, partial

from topicops.flow.pull_requests.planning import PlannedPullRequest
from topicops.model.errors import ForgeError
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.pull_requests.forge import Authors, Check, Comment, Forge, PullRequest
from topicops.model.pull_requests.planned import CommentContent, OtherPullRequest, ReviewState
from topicops.model.pull_requests.pull_request_plan import PlannedEnvironment
from topicops.model.pull_requests.shown import About, ShownByDigest
from topicops.steps.pull_requests.checks import check_of, failed_check, labels_of, pending_check, unplanned_check
from topicops.steps.pull_requests.overlaps import overlaps
from topicops.steps.pull_requests.reviewed import Members, ReviewFacts, review_states
from topicops.steps.pull_requests.shown_record import already_shown, read_record, record_line, shown_from, with_record
from topicops.steps.reporting.pull_requests.comment_markdown import (
    comment_parts,
    has_row_of,
    marked,
    shows_a_plan,
    with_other,
    with_problem,
)

MOST_OPEN = 50
"""How many other open pull requests are looked at; each costs a request, and a job has a thousand an hour."""
MOST_REVIEWED = 400
"""Changes of one environment that a review may approve: each takes sixty characters of the comment's record."""
Comments = Mapping[tuple[str, int], Comment]
"""Of one pull request, by environment and part."""
_NOTHING_SHOWN: ShownByDigest = {}
NO_REVIEWS = ReviewFacts(reviews=(), authors=Authors(logins=frozenset()), reviewers={}, members=lambda _: frozenset())
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

    def comments(self) -> Comments:
        """Our comments; of two with the same marker the first."""
        found: dict[tuple[str, int], Comment] = {}
        for comment in self.forge.own_comments(self.number):
            if (place := marked(comment.body)) is not None:
                found.setdefault(place, comment)
        return found

    def read_record(self, comments: Comments, environment: str) -> ShownByDigest:
        """What our comment about the environment showed, if its record is ours, and nobody has changed the comment."""
        first = comments.get((environment, 1))
        if first is None or self.key is None:
            return _NOTHING_SHOWN
        texts, about = texts_of(comments, environment), self.about(environment)
        return read_record(texts, self.key, about, updated_at=first.updated_at) or _NOTHING_SHOWN

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What is to be said about each environment, and what our comments have said so far."""

    contents: tuple[CommentContent, ...]
    earlier: Mapping[str, ShownByDigest] = field(default_factory=dict)
    """By environment, what its comment has shown all the while until now."""
    held: Mapping[str, Sequence[GatedChange]] = field(default_factory=dict)
    """By environment, the changes that a review may approve."""
    owners: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By environment, the owner of each of them, by digest."""
    others: tuple[OtherPullRequest, ...] = ()
    """Open ones that touch the same files of topics, in whatever environment."""


def texts_of(comments: Comments, environment: str) -> list[str]:
    """Of all parts, in their order."""
    return [comments[place].body for place in sorted(comments) if place[0] == environment]


def describe(
    planned: PlannedPullRequest, conversation: Conversation, comments: Comments, *, with_others: bool
) -> Described:
    """Ask the forge for reviews, and on demand for other open pull requests on the same topics."""
    summary = planned.summary
    held = {entry.environment: _held(planned.plans.get(entry.environment), entry.own) for entry in summary.environments}
    facts = conversation.review_facts(summary.reviewers) if any(held.values()) else NO_REVIEWS
    others = _others(planned, conversation) if with_others else ()
    remarks = (*summary.remarks, *([facts.problem] if facts.problem else []))
    contents, earlier, owners = list[CommentContent](), dict[str, ShownByDigest](), dict[str, Mapping[str, str]]()
    for entry in summary.environments:
        name, plan = entry.environment, planned.plans.get(entry.environment)
        owners[name] = {gated.digest: entry.owners.get(gated.change.topic, "") for gated in held[name]}
        shown = already_shown(conversation.read_record(comments, name), owners[name])
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
    return Described(contents=tuple(contents), earlier=earlier, held=held, owners=owners, others=others)


def _held(plan: Plan | None, own: Collection[str]) -> list[GatedChange]:
    """Those that a review of this pull request can be about: what was pending before had its own."""
    found = [gated for gated in plan.changes if gated.approvable and gated.change.topic in own] if plan else []
    return found[:MOST_REVIEWED]


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
    """The newest ones of this repository's own branches, in rising order: anybody can open many from a fork."""
    found = [pull for pull in forge.open_pull_requests(this.base_branch) if not pull.is_from_fork]
    return [other for other in found if other.number != this.number][-MOST_OPEN:]


# ---- comments ----


def post_comments(planned: PlannedPullRequest, conversation: Conversation) -> Described:
    """Write one comment for each environment, or edit ours; those of environments that are no longer touched go.

    A comment that shows a plan keeps it while there is no newer one, so that its reviews still count afterwards.
    """
    if problem := planned.summary.problem:
        edit_first_parts(conversation, partial(with_problem, problem=problem))
        return Described(contents=())
    comments = conversation.comments()
    described = describe(planned, conversation, comments, with_others=True)
    for content in described.contents:
        before = comments.get((content.environment, 1))
        if content.plan is None and before is not None and shows_a_plan(before.body):
            _edit_first_part(
                conversation, content.environment, comments, partial(with_problem, problem=content.problem)
            )
        else:
            _post(content, described, conversation, comments)
    _tell_others(described.others, conversation)
    known = {*planned.summary.left_out, *(content.environment for content in described.contents)}
    for (environment, _), comment in comments.items():
        if environment not in known:
            conversation.forge.remove_comment(conversation.number, comment.id)
    return described


def _post(content: CommentContent, described: Described, conversation: Conversation, comments: Comments) -> None:
    """Twice where changes are held: only once the forge has the text is it known since when it shows them."""
    name = content.environment
    posted = write_parts(conversation, name, comment_parts(content), comments)
    shown, parts = _shown_parts(content, described, conversation, posted[0].updated_at)
    if shown and conversation.key is not None:
        write_parts(conversation, name, parts, {(name, part): comment for part, comment in enumerate(posted, 1)})


def _shown_parts(
    content: CommentContent, described: Described, conversation: Conversation, posted_at: datetime
) -> tuple[ShownByDigest, Sequence[str]]:
    """The held changes that the comment has a row for, and the comment with a record of just these.

    A comment may leave out rows of which there are too many, and the record takes some of the room.
    """
    name = content.environment
    shown = shown_from(described.earlier[name], described.owners[name], head=content.head_commit, posted_at=posted_at)
    while True:
        since = {digest: known.since for digest, known in shown.items()}
        parts = recorded_parts(comment_parts, replace(content, shown_since=since), shown, conversation, posted_at)
        with_row = {g.digest for g in described.held[name] if any(has_row_of(g, part) for part in parts)}
        if shown.keys() <= with_row:
            return shown, parts
        shown = {digest: known for digest, known in shown.items() if digest in with_row}


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
    comments = conversation.comments()
    for environment, part in comments:
        if part == 1:
            _edit_first_part(conversation, environment, comments, edited)


def _edit_first_part(
    conversation: Conversation, environment: str, comments: Comments, edited: Callable[[str], str]
) -> None:
    """A record that still holds is written again, since it is of the text and of the time of its edit."""
    first, forge, number = comments[environment, 1], conversation.forge, conversation.number
    if (body := edited(first.body)) == first.body:
        return
    shown = conversation.read_record(comments, environment)
    posted = forge.edit_comment(number, first.id, body)
    if shown and conversation.key is not None:
        texts = [body, *texts_of(comments, environment)[1:]]
        about = conversation.about(environment)
        line = record_line(shown, conversation.key, about, texts=texts, posted_at=posted.updated_at)
        forge.edit_comment(number, first.id, with_record(body, line))


def recorded_parts(
    rendered: Callable[[CommentContent], Sequence[str]],
    content: CommentContent,
    shown: ShownByDigest,
    conversation: Conversation,
    posted_at: datetime,
) -> Sequence[str]:
    """The parts with a record of themselves at the end of the first, which has its share of the room."""
    if conversation.key is None or not shown:
        return rendered(content)
    line = partial(record_line, shown, conversation.key, conversation.about(content.environment), posted_at=posted_at)
    first, *others = rendered(replace(content, record=line(texts=())))
    return with_record(first, line(texts=[first, *others])), *others


def write_parts(
    conversation: Conversation,
    environment: str,
    parts: Sequence[str],
    comments: Comments,
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


def set_failed_check(problem: str, conversation: Conversation, *, commit: str = "", url: str) -> Check:
    """Of a pull request that could not be planned; the newest commit of its branch, where none is given."""
    check = failed_check(problem, url=url)
    conversation.forge.set_check(commit or conversation.pull_request.head_commit, check)
    return check


def set_pending_check(conversation: Conversation, *, url: str) -> Check:
    """Set before anything is planned: else an earlier check of this commit would let it be merged."""
    check = pending_check(url=url)
    conversation.forge.set_check(conversation.pull_request.head_commit, check)
    return check


def set_unplanned_check(reason: str, conversation: Conversation, *, url: str) -> Check:
    """Of a pull request that is not planned on purpose: neutral.

    A check belongs to a commit. That of another open pull request with the same commit stays, since that is planned.
    """
    check, this = unplanned_check(reason, url=url), conversation.pull_request
    others = conversation.forge.open_pull_requests_of(this.head_commit)
    if any(other.number != this.number and not other.is_from_fork for other in others):
        conversation.progress("The check stays as it is: it is that of another pull request with the same commit")
    else:
        conversation.forge.set_check(this.head_commit, check)
    return check


def set_check(planned: PlannedPullRequest, conversation: Conversation, *, url: str = "") -> Check:
    """The check on the newest commit of the branch, and the label of its risk."""
    summary = planned.summary
    if summary.problem:
        commit = summary.head_commit if _COMMIT.fullmatch(summary.head_commit) else ""
        return set_failed_check(summary.problem, conversation, commit=commit, url=url)
    contents = describe(planned, conversation, conversation.comments(), with_others=False).contents
    check = check_of(contents, remarks=summary.remarks, url=url)
    conversation.forge.set_check(summary.head_commit, check)
    if all(content.plan for content in contents):  # else the risk is not known, and the label of before stays
        conversation.forge.set_labels(conversation.number, labels_of(contents))
    return check

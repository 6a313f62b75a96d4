"""The comments of a pull request on its forge: what they say, what they have said, and how they are edited."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property, partial
from pathlib import PurePosixPath

from topicops.features.pull_requests import reviews
from topicops.features.pull_requests.comment_markdown import CommentKind, marked, no_plan_note, plan_comment
from topicops.features.pull_requests.edges.forge import Check, Comment, ForgeError, PullRequest
from topicops.features.pull_requests.edges.surroundings import Forge, open_forge, surroundings_about
from topicops.features.pull_requests.signed_reviews import checked_key
from topicops.features.pull_requests.values import (
    About,
    CommentContent,
    OtherPullRequest,
    PlannedPullRequest,
    ShownByDigest,
)
from topicops.model.errors import UsageError
from topicops.model.plans.plan import Plan
from topicops.model.runs.results import REVIEW_KEY

MOST_OPEN = 50
"""Number of other open pull requests that are looked at; each costs a request, and a job has a thousand an hour."""


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
        found = defaultdict[str, dict[str, Comment]](dict)
        for comment in self.forge.own_comments(self.number):
            if (place := marked(comment.body)) is not None:
                environment, kind = place
                found[environment].setdefault(kind, comment)
        return {name: OurComments(self, name, found[name]) for name in dict.fromkeys((*found, *environments))}

    def review_facts(self, reviewers: Mapping[str, tuple[str, ...]]) -> reviews.ReviewFacts:
        """Ask for reviews and authors; without any review where the forge does not give all of both."""

        @cache
        def members(team: str) -> frozenset[str] | None:
            try:
                return self.forge.members(team)
            except ForgeError as error:
                self.progress(f"The members of {team} are not known, so no review counts for their topics: {error}")
                return None

        facts = reviews.ReviewFacts(reviewers=reviewers, members=members)
        try:
            return replace(facts, reviews=self.forge.reviews(self.number), authors=self.forge.authors(self.number))
        except ForgeError as error:
            problem = f"No review counts now: {error}"
            self.progress(problem)
            return replace(facts, problem=problem)


def conversation_about(number: int | None, repository: str | None, *, progress: Callable[[str], None]) -> Conversation:
    """Open the pull request that the command names, else the CI's. Raises ``UsageError`` if none is, or no token."""
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
    """Our comments about one environment: its plan, and the note that follows it."""

    conversation: Conversation
    environment: str
    by_kind: Mapping[str, Comment]

    @property
    def about(self) -> About:
        return About(
            repository=self.conversation.forge.repository,
            pull_request=self.conversation.number,
            base_branch=self.conversation.pull_request.base_branch,
            environment=self.environment,
        )

    def record(self) -> ShownByDigest:
        """Read what the plan's comment has shown, if the record is ours, and nobody has changed the comment."""
        key, plan = self.conversation.key, self.by_kind.get("plan")
        if plan is None or key is None:
            return {}
        return reviews.read_record(plan.body, key, self.about, updated_at=plan.updated_at) or {}

    def write(self, kind: CommentKind, body: str) -> Comment:
        """Edit the comment, or add it. A note leaves the plan's comment and its record as they are."""
        forge, number, there = self.conversation.forge, self.conversation.number, self.by_kind.get(kind)
        return forge.edit_comment(number, there.id, body) if there else forge.add_comment(number, body)

    def remove(self, *kinds: CommentKind) -> None:
        for kind in kinds:
            if kind in self.by_kind:
                self.conversation.forge.remove_comment(self.conversation.number, self.by_kind[kind].id)


def describe(
    planned: PlannedPullRequest, conversation: Conversation, comments: Mapping[str, OurComments]
) -> list[CommentContent]:
    """Describe each environment, with the reviews of its held changes and what our comments have shown so far."""
    summary, has_key = planned.summary, conversation.key is not None
    found = [
        CommentContent(pull=summary, entry=entry, plan=planned.plans.get(entry.environment))
        for entry in summary.environments
    ]
    if not any(content.held for content in found):
        return found
    facts = conversation.review_facts(summary.reviewers)
    if facts.problem:
        summary = replace(summary, remarks=(*summary.remarks, facts.problem))
    described = []
    for content in found:
        owners, rules = content.owners, content.entry.rules
        shown = reviews.already_shown(comments[content.entry.environment].record(), owners)
        states = {
            gated.digest: reviews.review_state(
                gated, owners[gated.digest], shown.get(gated.digest), facts, rules, has_key=has_key
            )
            for gated in content.held
            if rules
        }
        described.append(replace(content, pull=summary, reviews=states, shown=shown))
    return described


def _others(planned: PlannedPullRequest, conversation: Conversation) -> tuple[OtherPullRequest, ...]:
    """Find open pull requests that touch the same topics, or none where the forge does not list them.

    Only the newest ones of this repository's own branches are looked at: anybody can open many from a fork.
    """
    forge, mine = conversation.forge, planned.summary.topic_files
    if not mine:
        return ()
    try:
        pulls = forge.open_pull_requests(conversation.pull_request.base_branch)
        beside = [pull for pull in pulls if not pull.is_from_fork and pull.number != conversation.number]
        files = {other: forge.changed_files(other.number) for other in beside[-MOST_OPEN:]}
    except ForgeError as error:
        conversation.progress(f"Other open pull requests on the same topics are not known: {error}")
        return ()
    return tuple(
        OtherPullRequest(
            mark=f"{forge.mark}{other.number}",
            url=other.url,
            author=other.author,
            topics=tuple(sorted(PurePosixPath(file).stem for file in both)),
        )
        for other, changed in files.items()
        if (both := changed.intersection(mine))
    )


def post_comments(planned: PlannedPullRequest, conversation: Conversation) -> int:
    """Write one comment for each environment, or edit ours; those of environments that are no longer touched go.

    Where the newest commit has no plan, the comment with the last plan stays, so that its reviews still count
    afterwards, and a note follows it. Returns the number of environments.
    """
    summary = planned.summary
    comments = conversation.our_comments(entry.environment for entry in summary.environments)
    if summary.problem:
        for name, ours in comments.items():
            ours.write("note", no_plan_note(name, summary.problem))
        return len(comments)
    others = _others(planned, conversation)
    for content in describe(planned, conversation, comments):
        own = set(content.entry.own)
        here = tuple(other for other in others if own.intersection(other.topics))
        _post(replace(content, others=here), comments[content.entry.environment])
    known = {*summary.left_out, *(entry.environment for entry in summary.environments)}
    for name in comments.keys() - known:
        comments[name].remove("plan", "note")
    return len(summary.environments)


def _post(content: CommentContent, ours: OurComments) -> None:
    """Write twice where changes are held: only once the forge has the text is it known since when it shows them."""
    if content.plan is None:
        ours.write("note", no_plan_note(content.entry.environment, content.entry.problem, content.pull))
        return
    posted = ours.write("plan", plan_comment(content, content.plan)[0])
    ours.remove("note")
    if recorded := _recorded(content, content.plan, ours, posted.updated_at):
        replace(ours, by_kind={"plan": posted}).write("plan", recorded)


def _recorded(content: CommentContent, plan: Plan, ours: OurComments, posted_at: datetime) -> str:
    """Give the posted text with a record of the held changes that it has a row for; empty where it shows none.

    Rows may be left out where there are too many, and the record takes some of the room.
    """
    key = ours.conversation.key
    shown = reviews.shown_from(content.shown, content.owners, head=content.pull.head_commit, posted_at=posted_at)
    while shown and key is not None:
        line = partial(reviews.record_line, shown, key, ours.about, posted_at=posted_at)
        text, left_out = plan_comment(replace(content, shown=shown, record=line(text="")), plan)
        if not shown.keys() & left_out:
            return reviews.with_record(text, line(text=text))
        shown = {digest: known for digest, known in shown.items() if digest not in left_out}
    return ""

"""Reviews that CI signs and hands to a run of Airflow. A forged one, or one for another environment, approves nothing.

CI and Airflow share a key, ``TOPICOPS_REVIEW_KEY``. Without the key no one can make a review, or a record of what a
comment showed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from topicops.edges.specs.git import is_in_history
from topicops.flow.runs.files import commit_of_files
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.errors import UsageError
from topicops.model.json_types import canonical_json, known
from topicops.model.plans.plan import Approval
from topicops.model.printable import printable
from topicops.model.runs.results import REVIEW_KEY, ReviewApprovals

SHORTEST_KEY = 32
"""Number of characters."""
MARK_OF_COMMIT = 12
"""Number of characters of the merge commit in the signature of an approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewApproval:
    """What one reviewer approved in one pull request, for one environment. ``signature_of`` signs all of it."""

    format_version: Literal["1.0"] = "1.0"
    repository: str
    """``acme/topics``."""
    pull_request: int
    url: str
    merge_commit: str
    environment: str
    reviewer: str
    authors: tuple[str, ...]
    """Logins of who opened the pull request and wrote its commits, sorted."""
    given_at: Annotated[datetime, msgspec.Meta(tz=True)]
    digests: tuple[str, ...]
    """Digests of the approved changes, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedReview:
    """One entry of the pipeline's param ``reviews``."""

    review: ReviewApproval
    signature: str


def checked_key(text: str | None) -> bytes | None:
    """Give the key as bytes. None means that none is set. Raises ``UsageError`` for one too short to be secret."""
    if not text:
        return None
    if len(text) < SHORTEST_KEY:
        raise UsageError(
            f"{REVIEW_KEY} has {len(text)} characters, at least {SHORTEST_KEY} are needed: make one with "
            "`openssl rand -hex 32`, and give the same to CI and to Airflow"
        )
    return text.encode()


def signature_of(value: object, key: bytes, *, purpose: str) -> str:
    """Make the hex HMAC-SHA256 of a value; by its purpose, one kind of signed value never stands for another."""
    text = canonical_json([purpose, msgspec.to_builtins(value)])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def is_signed(value: object, signature: str, key: bytes, *, purpose: str) -> bool:
    # As bytes: for a text that is not ASCII, `compare_digest` raises an error.
    given = signature.encode("utf-8", "surrogatepass")
    return hmac.compare_digest(signature_of(value, key, purpose=purpose).encode(), given)


def signed_review(review: ReviewApproval, key: bytes) -> SignedReview:
    return SignedReview(review=review, signature=signature_of(review, key, purpose="review"))


def is_genuine(signed: SignedReview, key: bytes) -> bool:
    """Say whether the review is exactly the one that a holder of the key has signed."""
    return is_signed(signed.review, signed.signature, key, purpose="review")


def approvals_of_reviews(run: EnvironmentRun, written: Sequence[object]) -> ReviewApprovals:
    """Read the approvals in these entries of the param ``reviews``. No entry fails the run: a sentence says why not."""
    if not written:
        return ReviewApprovals()
    reviews, problems = list[SignedReview](), list[str]()
    for n, entry in enumerate(written, 1):
        try:
            reviews.append(msgspec.convert(entry, type=known(SignedReview)))
        except msgspec.ValidationError as error:
            problems.append(f"Review {n} does not count: it is no review: {error}")
    try:
        key = checked_key(os.environ.get(REVIEW_KEY))
    except UsageError as error:
        return ReviewApprovals(objections=(*problems, f"No review counts: {error}"))
    commit = commit_of_files(run.files)
    found = review_approvals(
        reviews,
        key,
        environment=run.environment,
        is_in_files=lambda merged: is_in_history(run.topics, merged, of=commit) if commit else None,
    )
    return replace(found, objections=(*problems, *found.objections))


def review_approvals(
    reviews: Sequence[SignedReview], key: bytes | None, *, environment: str, is_in_files: Callable[[str], bool | None]
) -> ReviewApprovals:
    """Give the approvals of the genuine reviews for this environment. Which of them count, the policy says.

    Args:
        is_in_files: Whether the files contain a merge commit. None means that git cannot say: then the review counts
            all the same, because it names its changes by digest, and the files must ask for exactly these.
    """
    approvals, objections = list[Approval](), list[str]()
    for signed in reviews:
        review, merged = signed.review, signed.review.merge_commit[:MARK_OF_COMMIT]
        where = f"{review.repository}#{review.pull_request}"
        if reason := next(_objections(signed, key, environment, is_in_files), ""):
            objections.append(printable(f"The review of {where} by {review.reviewer} does not count: {reason}"))
            continue
        approval = Approval(
            digests=frozenset(review.digests),
            way="review",
            approver=review.reviewer,
            signature=printable(f"{review.reviewer} (review of {where}, merged as {merged})"),
            given_at=review.given_at,
            authors=frozenset(review.authors),
        )
        approvals.append(approval)
    return ReviewApprovals(approvals=tuple(approvals), objections=tuple(objections))


def _objections(
    signed: SignedReview, key: bytes | None, environment: str, is_in_files: Callable[[str], bool | None]
) -> Iterator[str]:
    """Yield why the review approves nothing, the reason that matters most first."""
    review = signed.review
    if key is None:
        yield f"{REVIEW_KEY} is not set here: give Airflow's workers the key of CI"
    elif not is_genuine(signed, key):
        yield f"its signature was not made with the {REVIEW_KEY} of this Airflow: it was changed, or CI has another key"
    if review.environment != environment:
        yield f"it is for environment {review.environment}"
    if is_in_files(review.merge_commit) is False:
        merged = review.merge_commit[:MARK_OF_COMMIT]
        yield f"it was merged as {merged}, which the history of these files does not contain"

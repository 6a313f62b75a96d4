"""The approvals in the reviews that CI has signed. What is not genuine, or not for here, approves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from topicops.model.plans.approval import Approval
from topicops.model.printable import printable
from topicops.model.runs.review import REVIEW_KEY, ReviewApproval, SignedReview
from topicops.steps.planning.signing import is_genuine

MARK_OF_COMMIT = 12
"""Characters of the merge commit in the signature of an approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewApprovals:
    approvals: tuple[Approval, ...] = ()
    objections: tuple[str, ...] = ()
    """Why the other reviews do not count: one sentence for each."""


def review_approvals(
    reviews: Sequence[SignedReview],
    key: bytes | None,
    *,
    environment: str,
    is_in_files: Callable[[str], bool | None],
) -> ReviewApprovals:
    """The approvals of the genuine reviews for this environment. Which of them count, the policy says.

    Args:
        key: None: there is none here, so no review is genuine.
        is_in_files: Whether the files contain a merge commit; None: git cannot say. Then the review counts all the
            same: it names its changes by digest, and the files must ask for exactly these.
    """
    approvals, objections = list[Approval](), list[str]()
    for signed in reviews:
        reason = next(_objections(signed, key, environment, is_in_files), "")
        if reason:
            objections.append(f"{_named(signed.review)} does not count: {reason}")
        else:
            approvals.append(_approval(signed.review))
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
        yield f"it is for environment {printable(review.environment)}"
    if is_in_files(review.merge_commit) is False:
        yield f"it was merged as {_mark(review)}, which the history of these files does not contain"


def _approval(review: ReviewApproval) -> Approval:
    where = f"{review.repository}#{review.pull_request}"
    return Approval(
        digests=frozenset(review.digests),
        way="review",
        approver=review.reviewer,
        signature=printable(f"{review.reviewer} (review of {where}, merged as {_mark(review)})"),
        given_at=review.given_at,
        authors=frozenset(review.authors),
    )


def _named(review: ReviewApproval) -> str:
    return printable(f"The review of {review.repository}#{review.pull_request} by {review.reviewer}")


def _mark(review: ReviewApproval) -> str:
    return printable(review.merge_commit[:MARK_OF_COMMIT])

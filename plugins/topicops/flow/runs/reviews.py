"""Reviews that CI hands to a run: read, checked with the key, and turned into approvals."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from topicops.edges.specs.git import is_in_history
from topicops.flow.runs.commits import commit_of_files
from topicops.flow.runs.run import Run
from topicops.model.errors import UsageError
from topicops.model.json_types import known
from topicops.model.runs.review import REVIEW_KEY, SignedReview
from topicops.steps.planning.signed_reviews import ReviewApprovals, checked_key, review_approvals


def approvals_of_reviews(run: Run, written: Sequence[object]) -> ReviewApprovals:
    """The approvals in these entries of the param ``reviews``. No entry fails the run; a sentence says what is wrong.

    Args:
        written: JSON values of ``SignedReview``.
    """
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
    found = review_approvals(reviews, key, environment=run.environment, is_in_files=_history_of(run))
    return replace(found, objections=(*problems, *found.objections))


def _history_of(run: Run) -> Callable[[str], bool | None]:
    commit = commit_of_files(run)
    return lambda merged: is_in_history(run.topics, merged, of=commit) if commit else None

"""Reviews that CI hands to a run: their key, how many there may be, and what they approve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicops.model.plans.plan import Approval

REVIEW_KEY = "TOPICOPS_REVIEW_KEY"
"""Name of the environment variable that holds the key of CI and Airflow, which signs reviews."""
MOST_REVIEWS = 50
"""Largest number of reviews of one run."""
MOST_DIGESTS = 500
"""Largest number in one review, in the conf of a run and in what a task returns; each has 64 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewApprovals:
    """What the reviews that a run was given approve."""

    approvals: tuple[Approval, ...] = ()
    objections: tuple[str, ...] = ()
    """Sentence for each other review, which says why it does not count."""

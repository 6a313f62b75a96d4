"""An approving review, as CI hands it to Airflow: who approved which changes, and the signature that proves it.

CI and Airflow share a key, ``TOPICOPS_REVIEW_KEY``. Whoever has no key can make neither a review nor a record of what
a comment showed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import msgspec

REVIEW_KEY = "TOPICOPS_REVIEW_KEY"
"""Names the environment variable that holds the key."""
SHORTEST_KEY = 32
"""Characters."""
MOST_REVIEWS = 50
"""Of one run."""
MOST_DIGESTS = 500
"""Of one review, of the conf of a run and of what a task returns; each has 64 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewApproval:
    """What one reviewer approved in one pull request, for one environment. ``signing.signature_of`` signs all of it."""

    format_version: Literal["1.0"] = "1.0"
    repository: str
    """``acme/topics``."""
    pull_request: int
    url: str
    merge_commit: str
    environment: str
    reviewer: str
    """Login on the forge."""
    authors: tuple[str, ...]
    """Who opened the pull request and wrote its commits, sorted."""
    given_at: Annotated[datetime, msgspec.Meta(tz=True)]
    """UTC."""
    digests: tuple[str, ...]
    """Of the approved changes, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedReview:
    """One entry of the pipeline's param ``reviews``."""

    review: ReviewApproval
    signature: str
    """Hex HMAC-SHA256."""

"""Signatures of reviews and of records in comments: HMAC-SHA256 over the canonical JSON of a value."""

from __future__ import annotations

import hashlib
import hmac

import msgspec

from topicops.model.canonical import canonical_json
from topicops.model.errors import UsageError
from topicops.model.runs.review import REVIEW_KEY, SHORTEST_KEY, ReviewApproval, SignedReview


def checked_key(text: str | None) -> bytes | None:
    """The key as bytes; None where none is set. Raises ``UsageError`` for one that is too short to be secret."""
    if not text:
        return None
    if len(text) < SHORTEST_KEY:
        raise UsageError(
            f"{REVIEW_KEY} has {len(text)} characters, at least {SHORTEST_KEY} are needed: make one with "
            "`openssl rand -hex 32`, and give the same to CI and to Airflow"
        )
    return text.encode()


def signature_of(value: object, key: bytes, *, purpose: str) -> str:
    """Hex HMAC-SHA256 of a value of ours.

    Args:
        purpose: What the value is, so that one kind of signed value can never stand for another.
    """
    text = canonical_json([purpose, msgspec.to_builtins(value)])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def is_signed(value: object, signature: str, key: bytes, *, purpose: str) -> bool:
    # As bytes: for a text that is not ASCII, `compare_digest` raises an error.
    given = signature.encode("utf-8", "surrogatepass")
    return hmac.compare_digest(signature_of(value, key, purpose=purpose).encode(), given)


def signed_review(review: ReviewApproval, key: bytes) -> SignedReview:
    return SignedReview(review=review, signature=signature_of(review, key, purpose="review"))


def is_genuine(signed: SignedReview, key: bytes) -> bool:
    """Whether the review is exactly the one that a holder of the key has signed."""
    return is_signed(signed.review, signed.signature, key, purpose="review")

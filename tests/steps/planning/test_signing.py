"""A signed review: that only who has the key makes one, and that no part of it can be changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from topicops.model.runs.review import ReviewApproval, SignedReview
from topicops.steps.planning.signing import is_genuine, signed_review

KEY = b"k" * 32
REVIEW = ReviewApproval(
    repository="acme/topics",
    pull_request=12,
    url="https://forge.example/acme/topics/pull/12",
    merge_commit="1" * 40,
    environment="prod",
    reviewer="alice",
    authors=("bob", "carol"),
    given_at=datetime(2026, 5, 1, 12, tzinfo=UTC),
    digests=("ab" * 32,),
)


def test_a_review_is_genuine_after_a_journey_as_json() -> None:
    sent = msgspec.to_builtins(signed_review(REVIEW, KEY))

    assert is_genuine(msgspec.convert(sent, SignedReview), KEY)


@pytest.mark.parametrize(
    "change",
    [
        {"repository": "acme/others"},
        {"pull_request": 13},
        {"merge_commit": "2" * 40},
        {"environment": "staging"},
        {"reviewer": "mallory"},
        {"authors": ()},
        {"given_at": datetime(2026, 5, 2, 12, tzinfo=UTC)},
        {"digests": ("cd" * 32,)},
        {"digests": ("ab" * 32, "cd" * 32)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_review_is_not(change: dict[str, object]) -> None:
    signed = signed_review(REVIEW, KEY)

    assert not is_genuine(replace(signed, review=replace(REVIEW, **change)), KEY)  # type: ignore[arg-type]


@pytest.mark.parametrize("signature", ["é", "", "\udcff", "ab" * 32], ids=["no ASCII", "empty", "no text", "made up"])
def test_a_signature_that_is_none_is_not_genuine(signature: str) -> None:
    assert not is_genuine(replace(signed_review(REVIEW, KEY), signature=signature), KEY)


def test_neither_is_one_that_another_key_has_signed() -> None:
    assert not is_genuine(signed_review(REVIEW, b"x" * 32), KEY)

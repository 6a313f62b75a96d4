"""The form of the runs' params: their JSON schemas."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.sdk import Param

from topicops.model.plans.plan import KEY_DIGITS
from topicops.model.runs.results import MOST_DIGESTS, MOST_REVIEWS
from topicops.on_airflow.site import MODES

MOST_AUTHORS = 200
USUAL, FOR_CI = "Usual", "CI"
"""Sections of the form. One word each: Airflow puts the name into an HTML id, and an id must not have a blank."""
HEX_64 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
KEY = {"type": "string", "pattern": f"^[0-9a-f]{{{KEY_DIGITS},64}}$"}
"""The first digits of a plan's fingerprint, or a whole digest."""
COMMIT_PATTERN = "^([0-9a-f]{40}|[0-9a-f]{64})$"
COMMIT = {"type": "string", "pattern": COMMIT_PATTERN}
LOGIN = {"type": "string", "minLength": 1, "maxLength": 255}
REVIEW_FIELDS: Mapping[str, object] = {
    "format_version": {"const": "1.0"},
    "repository": {"type": "string", "minLength": 1, "maxLength": 500},
    "pull_request": {"type": "integer", "minimum": 1},
    "url": {"type": "string", "maxLength": 2000},
    "merge_commit": COMMIT,
    "environment": {"type": "string", "minLength": 1, "maxLength": 100},
    "reviewer": LOGIN,
    "authors": {"type": "array", "items": LOGIN, "maxItems": MOST_AUTHORS},
    "given_at": {"type": "string", "format": "date-time", "maxLength": 40},
    "digests": {"type": "array", "items": HEX_64, "maxItems": MOST_DIGESTS},
}
"""Fields of a review, as CI signs it."""


def pipeline_params(mode: str) -> dict[str, Param]:
    """Return the pipeline's params; ``mode`` is the default of the one with that name."""
    # Airflow marks a field as a must unless its type takes null.
    return {
        "mode": Param(
            mode,
            type=["null", "string"],
            enum=[*MODES, None],
            title="Mode",
            section=USUAL,
            description="plan only reads; apply sends what may run. Empty: plan.",
        ),
        "only": only_param(),
        "commit": Param(
            None,
            type=["null", "string"],
            pattern=COMMIT_PATTERN,
            title="Commit",
            section=USUAL,
            description="All digits of the commit that the files must be of. Empty: the newest that Airflow has.",
        ),
        "approved": digests_param(
            "Approved changes",
            "What may run although it needs an approval, one in a line: the 64 digits of a change, or for all changes "
            "8 digits or more of the plan's fingerprint. The Plan tab has them. Usually you answer the question in "
            "Required Actions instead.",
            items=KEY,
        ),
        "reviews": Param(
            [],
            type=["null", "array"],
            title="Signed reviews",
            section=FOR_CI,
            items=_object({"review": _object(REVIEW_FIELDS), "signature": HEX_64}),
            maxItems=MOST_REVIEWS,
            description="Only for CI: reviews of a pull request, as `topicops ci trigger` signs them. "
            "Leave it as it is.",
        ),
    }


def only_param() -> Param:
    return Param(
        None,
        type=["null", "string"],
        title="Only these topics",
        section=USUAL,
        description="A pattern, for example shop.* or payments.ledger. Empty: all topics.",
    )


def digests_param(title: str, description: str, *, items: Mapping[str, str] = HEX_64) -> Param:
    return Param([], type=["null", "array"], items=items, title=title, section=FOR_CI, description=description)


def _object(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of an object that has all these fields and no other."""
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}

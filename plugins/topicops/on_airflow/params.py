"""The params of runs: their JSON schemas, and what tasks read of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING

from airflow.sdk import Context, Param

from topicops.model.errors import UsageError
from topicops.model.printable import printable
from topicops.model.runs.results import MOST_DIGESTS, MOST_REVIEWS, ReviewApprovals
from topicops.model.specs.topic_config import read_duration_ms
from topicops.on_airflow.options import MODES

if TYPE_CHECKING:
    from topicops.flow.runs.run import EnvironmentRun
    from topicops.model.plans.plan import Approval

log = logging.getLogger(__name__)

ANSWER_WITHIN = "8h"
COMMIT_WITHIN = "10m"
MOST_AUTHORS = 200

USUAL, FOR_CI = "Usual", "CI"
"""Sections of the form. One word each: Airflow puts the name into an HTML id, and an id must not have a blank."""
HEX_64 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
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
    """The pipeline's params; ``mode`` is the default of the one with that name."""
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
            "Changes that may run although they need an approval: the 64 digits of each, one in a line. The Plan tab "
            "has them. Usually you answer the question in Required Actions instead.",
        ),
        "reviews": reviews_param(),
    }


def only_param() -> Param:
    return Param(
        None,
        type=["null", "string"],
        title="Only these topics",
        section=USUAL,
        description="A pattern, for example shop.* or payments.ledger. Empty: all topics.",
    )


def digests_param(title: str, description: str) -> Param:
    return Param([], type=["null", "array"], items=HEX_64, title=title, section=FOR_CI, description=description)


def reviews_param() -> Param:
    """Entries are reviews with their signatures."""
    review = _object(REVIEW_FIELDS)
    return Param(
        [],
        type=["null", "array"],
        title="Signed reviews",
        section=FOR_CI,
        items=_object({"review": review, "signature": HEX_64}),
        maxItems=MOST_REVIEWS,
        description="Only for CI: reviews of a pull request, as `topicops ci trigger` signs them. Leave it as it is.",
    )


def commit_within() -> timedelta:
    """``TOPICOPS_COMMIT_WITHIN``: how long a pinned run waits for its commit. Raises ``UsageError``."""
    return duration_of("TOPICOPS_COMMIT_WITHIN", COMMIT_WITHIN)


def duration_of(name: str, default: str) -> timedelta:
    """The environment variable of this name. Raises ``UsageError`` for what is no duration."""
    text = os.environ.get(name) or default
    try:
        return timedelta(milliseconds=read_duration_ms(text))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{name} is {text!r}: {error}; write 30m, 8h or 2d") from error


def answer_within() -> timedelta:
    """``TOPICOPS_ANSWER_WITHIN``: how long a question waits. Raises ``UsageError``."""
    within = duration_of("TOPICOPS_ANSWER_WITHIN", ANSWER_WITHIN)
    if not within:
        raise UsageError(
            f"TOPICOPS_ANSWER_WITHIN is {os.environ['TOPICOPS_ANSWER_WITHIN']!r}: nobody can answer in no time; write "
            "30m, 8h or 2d"
        )
    return within


def mode_of(context: Context) -> str:
    """``plan`` or ``apply``; ``plan`` where the form was left empty."""
    return str(context["params"]["mode"] or MODES[0])


def mode_or(context: Context, other: str) -> str:
    """The mode of a run of the pipeline; of a DAG that has no mode the other word."""
    return mode_of(context) if "mode" in context["params"] else other


def refuse_unknown_params(context: Context) -> None:
    """Raise ``UsageError`` for a name that is no param of this DAG: Airflow takes any, and it would mean nothing."""
    given = getattr(context["dag_run"], "conf", None) or {}
    known = set(context["dag"].params) if "dag" in context else set(given)
    if unknown := sorted(set(given) - known):
        near = get_close_matches(unknown[0].lower(), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(sorted(known))}"
        raise UsageError(
            f"{printable(unknown[0])} is no param of this DAG: {hint} Nothing was read or sent; start a new run"
        )


def only_of(context: Context) -> str | None:
    return context["params"].get("only") or None


def pinned_commit(context: Context) -> str | None:
    """The commit that the run is pinned to; None: it takes the files as they are."""
    return context["params"].get("commit") or None


def triggered_by(context: Context) -> str | None:
    """The Airflow user who triggered the run, or the run that triggered it; None: the schedule did."""
    return context["dag_run"].triggering_user_name or None


def approvals_by_parameter(context: Context) -> tuple[Approval, ...]:
    """What the run's param ``approved`` names, by whoever triggered the run and when; empty: it names nothing.

    The author of the run's changes is not known any better: he who triggers it is taken for the author too.
    """
    from topicops.model.plans.plan import Approval

    digests = frozenset(context["params"].get("approved") or ())
    if not digests:
        return ()
    name = triggered_by(context)
    approval = Approval(
        digests=digests,
        way="parameter",
        approver=name,
        signature=f"{name or 'unknown'} (by parameter)",
        given_at=context["dag_run"].run_after,
        authors=frozenset({name} if name else ()),
    )
    return (approval,)


def approvals_by_review(run: EnvironmentRun, context: Context) -> ReviewApprovals:
    """What the run's param ``reviews`` approves; the log says why a review does not count."""
    from topicops.on_airflow.plugged import REVIEWS

    found = [approvals_of(run, context["params"].get("reviews") or ()) for approvals_of in REVIEWS]
    objections = tuple(chain.from_iterable(each.objections for each in found))
    for objection in objections:
        log.warning("%s", objection)
    return ReviewApprovals(approvals=tuple(chain.from_iterable(e.approvals for e in found)), objections=objections)


def _object(fields: Mapping[str, object]) -> dict[str, object]:
    """The schema of an object that has all these fields and no other."""
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}

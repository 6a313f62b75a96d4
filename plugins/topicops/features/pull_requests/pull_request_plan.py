"""What ``topicops ci plan`` leaves for later commands: ``pull-request.json``, and beside it a plan per environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from topicops.model.specs.environment import Risk

PULL_REQUEST_FILE = "pull-request.json"


def plan_file_of(environment: str) -> str:
    return f"{environment}.plan.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRules:
    """What the policy of an environment says about reviews; of the base branch."""

    counts: bool
    """Whether ``policy.approvals`` has ``review``."""
    place: str
    """Where the policy says so, for messages."""
    author_approves: Risk
    lasts: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEnvironment:
    """One environment that the pull request touches."""

    environment: str
    own: tuple[str, ...]
    """Topics that the pull request changes there, sorted; none where it changes policy alone."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """Owner of each topic with a held change: the one that the base branch names, else the branch's own word."""
    rules: ReviewRules | None = None
    problem: str = ""
    """Why there is no plan; else the plan is in ``plan_file_of``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestPlan:
    format_version: Literal["1.0"] = "1.0"
    number: int | None
    """None: planned by hand, for no pull request that is known."""
    base_commit: str
    head_commit: str
    topic_files: tuple[str, ...]
    """Files of topics that the pull request touches, by path from the repository's root, sorted."""
    reviewers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By owner, as ``owners.yaml`` of the base branch has them: logins, and teams (``acme/payments``)."""
    remarks: tuple[str, ...] = ()
    environments: tuple[PlannedEnvironment, ...] = ()
    left_out: tuple[str, ...] = ()
    """Environments that the command was told to leave out: nothing is known of them."""
    problem: str = ""
    """Why nothing could be planned, such as a conflict with the base branch."""

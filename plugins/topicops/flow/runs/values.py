"""What the steps of a run give each other. ``kept`` writes these values to the run's folder and reads them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.delta import Delta
from topicops.model.plans.plan import ChangeSet, Plan
from topicops.model.runs.facts import Facts, Reading
from topicops.model.runs.results import Check, Outcome, QualityReport
from topicops.model.specs.desired import Desired
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.environment import Environment

RunMode = Literal["plan", "apply", "drift", "verify"]
"""Kind of run; ``apply`` means that it could send changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Specs:
    """Topics of the files in one environment."""

    environment: Environment
    desired: Desired


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was read of the cluster."""

    live: ClusterSnapshot
    reading: Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How the files and the cluster differ."""

    delta: Delta
    facts: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResults:
    """What the steps of one run have come to so far. A step that has not run has left None, or nothing."""

    reading: Reading | None = None
    environment: Environment | None = None
    described: frozenset[str] = frozenset()
    """Names of the topics in the files."""
    left_out: frozenset[str] = frozenset()
    """Names of the topics whose files have errors, and are left out."""
    delta: Delta | None = None
    plan: Plan | None = None
    outcomes: tuple[Outcome, ...] = ()
    has_applied: bool = False
    """Whether a step that sends changes has run; it may have sent none."""
    checks: tuple[Check, ...] = ()
    quality_before: QualityReport | None = None
    quality_after: QualityReport | None = None
    facts_before: Facts | None = None
    facts_after: Facts | None = None
    notes: tuple[str, ...] = ()
    """Sentences that the report shows beside the outcomes."""
    rejected: frozenset[str] = frozenset()
    """Digests of the changes that the approval left out."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Problems that ``validate`` found, if they ended the run."""
    is_answer: bool = False
    """Whether the run carries out a person's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a plan was made of, and the plan."""

    specs: Specs
    snapshot: Snapshot
    comparison: Comparison
    changes: ChangeSet
    """Changes that the gate judged."""
    plan: Plan

    def results(self) -> RunResults:
        return RunResults(
            reading=self.snapshot.reading,
            environment=self.specs.environment,
            described=frozenset(self.specs.desired.topics),
            left_out=frozenset(self.specs.desired.left_out),
            delta=self.comparison.delta,
            plan=self.plan,
            facts_before=self.comparison.facts,
        )

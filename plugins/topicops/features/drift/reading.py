"""Read the files and the live cluster, and compare them."""

from __future__ import annotations

from dataclasses import replace

from topicops.flow.runs.access import read_live_topics
from topicops.flow.runs.files import read_needed_specs
from topicops.flow.runs.guards import known_lost_topics
from topicops.flow.runs.run import EnvironmentRun
from topicops.steps.planning.drift import DriftReport, drift
from topicops.steps.planning.only import needs_of
from topicops.steps.specs.needed import no_topic


def live_drift(run: EnvironmentRun, *, only: str | None = None) -> DriftReport:
    """Say where the live cluster differs from the files; writes nothing.

    Raises:
        SpecError: The files have errors.
        WrongTargetError: The cluster is not the one of the environment.
    """
    run.progress(f"Reading {run.topics}")
    environment, desired = read_needed_specs(run.files, needs_of(only) or no_topic, run.progress).require()
    run.progress(f"Reading the live topics of {run.environment}")
    live = read_live_topics(run.access(environment))
    lost = known_lost_topics(run.home, run.environment, live, desired)
    return drift(desired, replace(live, lost=lost), environment, only=only)

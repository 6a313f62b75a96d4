"""Read what the Quality tab shows of one run from its artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topicops.features.quality.past_runs import RunQuality, quality_history, runs_without_rules
from topicops.flow.runs.run import Place
from topicops.model.runs.facts import Facts, FactsWhen
from topicops.model.runs.results import QualityReport, QualitySuite, quality_file
from topicops.on_airflow.names import RunOf, kind_of
from topicops.on_airflow.pages.reading import RunReading, opened


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityModel:
    run: RunOf
    before: QualityReport | None = None
    after: QualityReport | None = None
    facts: Facts | None = None
    """Facts of the newest snapshot."""
    facts_when: FactsWhen = "before"
    """Snapshot of the run that the facts come from."""
    history: tuple[RunQuality, ...] = ()
    """The last runs of the DAG that evaluated a rule, newest first."""
    without_rules: int = 0
    """Number of its runs that evaluated no rules."""
    quiet: str = ""
    """Reason why the run ended after its snapshot, if it did; one sentence."""
    problems: tuple[str, ...] = ()
    """Files that exist and cannot be read."""


def suites_of(run: RunOf) -> tuple[QualitySuite, ...]:
    """Return the suites of rules that a run of this DAG evaluates: an approval only sends, a drift run only looks."""
    one: Mapping[str, tuple[QualitySuite, ...]] = {"approval": ("after",), "drift": ("before",)}
    return one.get(kind_of(run.dag_id) or "", ("before", "after"))


def read_quality(home: Place, run: RunOf) -> QualityModel:
    """Read each file on its own, so a damaged file does not hide the others."""
    if run.environment is None:
        return QualityModel(run=run)
    reading = RunReading(opened(home, run.dag_id, run.run_id))
    after = reading.facts("after")

    def report(suite: QualitySuite) -> QualityReport | None:
        name = quality_file(suite)
        return reading.value(name, lambda run: run.store.read_value(name, QualityReport))

    return QualityModel(
        run=run,
        before=report("before"),
        after=report("after"),
        facts=after or reading.facts("before"),
        facts_when="after" if after else "before",
        history=quality_history(home, run.dag_id),
        without_rules=runs_without_rules(home, run.dag_id),
        quiet=reading.quiet(),
        problems=tuple(reading.problems),
    )

"""Great Expectations validates the measures of a suite: one expectation for each rule.

What a user of Great Expectations finds is a project of its own form, one for each environment: suites, a checkpoint,
and the validation results of the last runs, from which it draws its Data Docs.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

# ruff: noqa: E402 - at import it logs more than two hundred INFO lines, which would fill every task's log
logging.getLogger("great_expectations").setLevel(logging.WARNING)

import great_expectations as gx
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.expectations.core.expect_column_max_to_be_between import ExpectColumnMaxToBeBetween
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.row_conditions import Column

from topicops.edges.file_locks import locked
from topicops.features.quality.measures import Measure
from topicops.features.quality.rules import Rule
from topicops.model.errors import TopicopsError
from topicops.model.printable import first_line

# This module sets a level of its own, and logs each temporary folder.
logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)

_log = logging.getLogger(__name__)
_GX = "gx"
RESULTS = Path(_GX, "uncommitted", "validations")
_SOURCE, _ASSET, _BATCH = "topicops", "measures", "run"
_MOST_RUNS = 200
"""Runs whose results a project keeps."""


def expectation_of(rule: Rule) -> ExpectColumnMaxToBeBetween:
    """Expect that no row breaks the rule; the observed value is the number of rows that do."""
    return ExpectColumnMaxToBeBetween(
        column="rows_failed",
        max_value=0,
        row_condition=Column("rule") == str(rule.id),
        severity=FailureSeverity(rule.severity),
        description=rule.title,
        meta={"rule": str(rule.id), "holds": rule.holds, "runbook": rule.runbook},
    )


def failed_rules(
    project: Path, suite: str, rules: Sequence[Rule], measures: Sequence[Measure], *, run: str
) -> frozenset[str]:
    """Validate the measures, keep suite and result in the project, and return the rules that failed.

    A project that cannot be read is moved aside, and made anew.

    Raises ``TopicopsError`` where it cannot be written, and where Great Expectations failed in a new project too.
    """
    try:
        project.mkdir(parents=True, exist_ok=True)
        with locked(project / "lock"):  # Great Expectations writes its project's file anew each time
            try:
                results = _validated(project, suite, rules, measures, run)
            except OSError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it says of garbage: the project is not needed to judge
                _log.warning("%s/gx cannot be read (%s) and is moved aside", project, first_line(error))
                _move_aside(project)
                results = _validated(project, suite, rules, measures, run)
            _forget(project / RESULTS / suite)
    except Exception as error:
        raise TopicopsError(f"Great Expectations failed in {project}: {first_line(error)}") from error
    judged = {
        str(config.meta["rule"]): result for result in results if (config := result.expectation_config) and config.meta
    }
    failed = frozenset(str(rule.id) for rule in rules if not judged[str(rule.id)].success)
    if wrong := failed ^ {measure.rule for measure in measures if measure.rows_failed}:
        raise TopicopsError(f"Great Expectations judged {', '.join(sorted(wrong))} otherwise than its measures say")
    return failed


def _validated(
    project: Path, suite: str, rules: Iterable[Rule], measures: Sequence[Measure], run: str
) -> list[gx.core.ExpectationValidationResult]:
    context = gx.get_context(mode="file", project_root_dir=project)
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    frame = pd.DataFrame(measures, columns=Measure._fields)
    asset = context.data_sources.add_or_update_pandas(_SOURCE).add_dataframe_asset(_ASSET)
    expectations = gx.ExpectationSuite(name=suite, expectations=[expectation_of(rule) for rule in rules])
    definition = gx.ValidationDefinition(
        name=suite,
        data=asset.add_batch_definition_whole_dataframe(_BATCH),
        suite=context.suites.add_or_update(expectations),
    )
    checkpoint = gx.Checkpoint(
        name=suite,
        validation_definitions=[context.validation_definitions.add_or_update(definition)],
        result_format="BASIC",
    )
    checked = context.checkpoints.add_or_update(checkpoint).run(
        batch_parameters={"dataframe": frame}, run_id=gx.RunIdentifier(run_name=run.replace("/", " "))
    )
    [result] = checked.run_results.values()
    return result.results


def _move_aside(project: Path) -> None:
    """Keep what cannot be read beside the project, in place of what was kept so before."""
    aside = project / "unreadable"
    shutil.rmtree(aside, ignore_errors=True)
    if (project / _GX).exists():
        (project / _GX).rename(aside)


def _forget(results: Path) -> None:
    """Remove the results of old runs."""
    runs = sorted(
        (folder for folder in results.glob("*") if folder.is_dir()), key=lambda folder: folder.stat().st_mtime
    )
    for folder in runs[:-_MOST_RUNS]:
        shutil.rmtree(folder, ignore_errors=True)

"""The JSON that programs read: what commands print with ``--format json``, and what a run or the home keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import topicops.features.ask.audit.audited
import topicops.features.ask.doctor.findings
import topicops.features.ask.history.answers
import topicops.features.ask.history.lines
import topicops.features.ask.topics.listing
import topicops.features.ask.why.values
import topicops.features.files.authoring.adopting
import topicops.features.files.authoring.drafts
import topicops.features.files.explain.explanation
import topicops.features.fleet.values
import topicops.features.rehearse.losses
import topicops.features.rehearse.played
import topicops.features.undo.values
from topicops.model.plans.plan_file import PlanFile
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.facts import Facts
from topicops.model.runs.results import QualityReport
from topicops.steps.planning.diff import DriftReport
from topicops.steps.reporting.diagnostics_text import Diagnostics, Failed
from topicops.steps.reporting.run_report import ReportFile


@dataclass(frozen=True, slots=True)
class JsonOutput:
    """One format."""

    kind: type
    """Type that is written as JSON."""
    commands: tuple[str, ...] = ()
    """Commands that print it; a command may print one of several."""
    files: tuple[str, ...] = ()
    """Files that hold it."""


OUTPUTS: Mapping[str, JsonOutput] = {
    "plan": JsonOutput(PlanFile, ("plan",), ("plan.json",)),
    "report": JsonOutput(ReportFile, ("apply", "verify"), ("report.json",)),
    "fleet": JsonOutput(topicops.features.fleet.values.FleetReport, ("plan", "drift", "verify"), ("fleet.json",)),
    "drift": JsonOutput(DriftReport, ("drift",), ("drift.json",)),
    "diagnostics": JsonOutput(Diagnostics, ("validate", "ci validate")),
    "explanation": JsonOutput(topicops.features.files.explain.explanation.Explanation, ("explain",)),
    "doctor": JsonOutput(topicops.features.ask.doctor.findings.DoctorReport, ("doctor",)),
    "why": JsonOutput(topicops.features.ask.why.values.Why, ("why",)),
    "topics": JsonOutput(topicops.features.ask.topics.listing.Listing, ("list",)),
    "rehearsal": JsonOutput(topicops.features.rehearse.played.Rehearsal, ("rehearse",)),
    "rack-losses": JsonOutput(topicops.features.rehearse.losses.RackLosses, ("rehearse",)),
    "import": JsonOutput(topicops.features.files.authoring.drafts.ImportResult, ("import",)),
    "adopt": JsonOutput(topicops.features.files.authoring.adopting.Adopted, ("adopt",)),
    "undo": JsonOutput(topicops.features.undo.values.Undo, ("undo",)),
    "history": JsonOutput(topicops.features.ask.history.answers.History, ("drift", "audit past", "audit quality")),
    "audit-runs": JsonOutput(topicops.features.ask.audit.audited.AuditedRuns, ("audit runs",)),
    "audit-lines": JsonOutput(topicops.features.ask.audit.audited.AuditedLines, ("audit topic", "audit run")),
    "audit-check": JsonOutput(topicops.features.ask.audit.audited.CheckedLogs, ("audit verify",)),
    "error": JsonOutput(Failed),
    "quality": JsonOutput(QualityReport, files=("quality-before.json", "quality-after.json")),
    "facts": JsonOutput(Facts, files=("facts-before.json", "facts-after.json")),
    "audit-line": JsonOutput(AuditLine, files=("audit/<environment>.jsonl",)),
    "history-line": JsonOutput(topicops.features.ask.history.lines.HistoryLine, files=("history/<environment>.jsonl",)),
}
"""Outputs by the name of the schema. Any command prints ``error`` in the place of its result.

Deleting a feature deletes its lines here.
"""

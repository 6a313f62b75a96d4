"""The JSON that programs read: what commands print with ``--format json``, and what a run or the home keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

import topicops.features.audit.values
import topicops.features.authoring.drafts
import topicops.features.doctor.values
import topicops.features.fleet.text
import topicops.features.history.asking
import topicops.features.history.lines
import topicops.features.rehearse.each_rack
import topicops.features.rehearse.played
import topicops.features.sandbox.commands.local
import topicops.features.undo.text
import topicops.features.why.values
from topicops.model.json_schema import Schema, as_object, written_schema
from topicops.model.plans.plan_file import PlanFile
from topicops.model.plans.plan_schema import plan_schema
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.facts import Facts
from topicops.model.runs.results import QualityReport
from topicops.steps.reporting.cluster.drift_text import DriftJson
from topicops.steps.reporting.cluster.topics_text import TopicsJson
from topicops.steps.reporting.error_json import ErrorJson
from topicops.steps.reporting.runs.run_report import ReportJson
from topicops.steps.reporting.specs.diagnostics_text import DiagnosticsJson
from topicops.steps.reporting.specs.explain_text import ExplanationJson

PLAN = "plan"


@dataclass(frozen=True, slots=True)
class JsonOutput:
    """One format."""

    kind: type
    """What is dumped."""
    commands: tuple[str, ...] = ()
    """Those that print it; a command may print one of several."""
    files: tuple[str, ...] = ()
    """Where it is kept."""


OUTPUTS: Mapping[str, JsonOutput] = {
    PLAN: JsonOutput(PlanFile, ("plan", "show"), ("plan.json",)),
    "report": JsonOutput(ReportJson, ("apply", "verify"), ("report.json",)),
    "fleet": JsonOutput(topicops.features.fleet.text.FleetJson, ("plan", "drift", "verify"), ("fleet.json",)),
    "drift": JsonOutput(DriftJson, ("drift",), ("drift.json",)),
    "diagnostics": JsonOutput(DiagnosticsJson, ("validate", "ci validate")),
    "explanation": JsonOutput(ExplanationJson, ("explain",)),
    "doctor": JsonOutput(topicops.features.doctor.values.DoctorReport, ("doctor",)),
    "why": JsonOutput(topicops.features.why.values.Why, ("why",)),
    "topics": JsonOutput(TopicsJson, ("topics",)),
    "rehearsal": JsonOutput(topicops.features.rehearse.played.Rehearsal, ("rehearse",)),
    "rack-losses": JsonOutput(topicops.features.rehearse.each_rack.RackLosses, ("rehearse",)),
    "import": JsonOutput(topicops.features.authoring.drafts.ImportResult, ("import",)),
    "undo": JsonOutput(topicops.features.undo.text.UndoJson, ("undo",)),
    "history": JsonOutput(topicops.features.history.asking.History, ("drift", "history topic", "history quality")),
    "audit-runs": JsonOutput(topicops.features.audit.values.AuditedRuns, ("audit runs",)),
    "audit-lines": JsonOutput(topicops.features.audit.values.AuditedLines, ("audit topic", "audit run")),
    "audit-check": JsonOutput(topicops.features.audit.values.CheckedLogs, ("audit verify",)),
    "local-status": JsonOutput(topicops.features.sandbox.commands.local.ClusterStatusJson, ("local status",)),
    "error": JsonOutput(ErrorJson),
    "quality": JsonOutput(QualityReport, files=("quality-before.json", "quality-after.json")),
    "facts": JsonOutput(Facts, files=("facts-before.json", "facts-after.json")),
    "audit-line": JsonOutput(AuditLine, files=("audit/<environment>.jsonl",)),
    "history-line": JsonOutput(topicops.features.history.lines.HistoryLine, files=("history/<environment>.jsonl",)),
}
"""By the name of the schema. Any command prints ``error`` in the place of its result.

Deleting a feature deletes its lines here.
"""


def output_schema(name: str) -> Schema:
    """The whole schema of one format; a key of ``OUTPUTS``. It accepts every minor version, as the plan's does."""
    plan = plan_schema()
    if name == PLAN:
        return plan
    of_plan = as_object(plan["$defs"])
    return written_schema(
        name,
        OUTPUTS[name].kind,
        lambda part, found: as_object(of_plan[part]) if part in of_plan else _with_all_required(found),
    )


def _with_all_required(schema: Schema) -> Schema:
    """A field with a default is always written too."""
    if "properties" not in schema:
        return schema
    fields = {name: as_object(field) for name, field in as_object(schema["properties"]).items()}
    with_default = [name for name, field in fields.items() if "default" in field]
    for name in with_default:
        del fields[name]["default"]
    return {**schema, "required": [*msgspec.convert(schema["required"], list[str]), *with_default]}

"""The steps with the outside world plugged in: each takes values and gives values, and ``runs.kept`` writes them down.

Commands and Airflow tasks both call these functions, so that they cannot differ. ``access`` is the only place that
chooses which edge fills which port. Heavy edges (Spark, brokers, ZooKeeper) are imported by the step that needs them,
and the modules of this package by the first use of their names, so that a DAG file is parsed without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicops.flow.applying import approved_digests
    from topicops.flow.authoring import import_topics, topic_id, topic_owners
    from topicops.flow.inspecting import audit_files, record_drift
    from topicops.flow.planning import make_plan
    from topicops.flow.quality import one_application, quality_after, quality_before
    from topicops.flow.quiet import judged_by, look_for_quiet, note_good_run
    from topicops.flow.rehearsing import rehearse, without_each_rack
    from topicops.flow.reporting import render, render_report, report_file, run_report, run_result, shown_report
    from topicops.flow.runs.outcomes import read_outcomes
    from topicops.flow.runs.run import Engine, Run, Summary, home_folder, load_plan, open_run, save_plan
    from topicops.flow.single_steps import (
        apply,
        diff,
        diff_once,
        gate,
        note_verified,
        plan,
        plan_held,
        report,
        snapshot,
        validate,
        verify,
    )
    from topicops.flow.topic_index import index_topics
    from topicops.flow.verifying import check_topics
    from topicops.flow.whole_runs import apply_own_plan, apply_plan, verify_cluster, verify_plan

_NAMES = {
    "applying": ("approved_digests",),
    "authoring": ("import_topics", "topic_id", "topic_owners"),
    "inspecting": ("audit_files", "record_drift"),
    "runs.outcomes": ("read_outcomes",),
    "planning": ("make_plan",),
    "quality": ("one_application", "quality_after", "quality_before"),
    "quiet": ("judged_by", "look_for_quiet", "note_good_run"),
    "rehearsing": ("rehearse", "without_each_rack"),
    "reporting": ("render", "render_report", "report_file", "run_report", "run_result", "shown_report"),
    "runs.run": ("Engine", "Run", "Summary", "home_folder", "load_plan", "open_run", "save_plan"),
    "single_steps": (
        "apply",
        "diff",
        "diff_once",
        "gate",
        "note_verified",
        "plan",
        "plan_held",
        "report",
        "snapshot",
        "validate",
        "verify",
    ),
    "topic_index": ("index_topics",),
    "verifying": ("check_topics",),
    "whole_runs": ("apply_own_plan", "apply_plan", "verify_cluster", "verify_plan"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Engine",
    "Run",
    "Summary",
    "apply",
    "apply_own_plan",
    "apply_plan",
    "approved_digests",
    "audit_files",
    "check_topics",
    "diff",
    "diff_once",
    "gate",
    "home_folder",
    "import_topics",
    "index_topics",
    "judged_by",
    "load_plan",
    "look_for_quiet",
    "make_plan",
    "note_good_run",
    "note_verified",
    "one_application",
    "open_run",
    "plan",
    "plan_held",
    "quality_after",
    "quality_before",
    "read_outcomes",
    "record_drift",
    "rehearse",
    "render",
    "render_report",
    "report",
    "report_file",
    "run_report",
    "run_result",
    "save_plan",
    "shown_report",
    "snapshot",
    "topic_id",
    "topic_owners",
    "validate",
    "verify",
    "verify_cluster",
    "verify_plan",
    "without_each_rack",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

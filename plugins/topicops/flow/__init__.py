"""The steps with the outside world plugged in: each takes values and gives values, and ``runs.kept`` writes them down.

Commands and Airflow tasks both call these functions, so that they cannot differ. ``access`` is the only place that
chooses which edge fills which port. Heavy edges (Spark, brokers, ZooKeeper) are imported by the step that needs them,
and the modules of this package by the first use of their names, so that a DAG file is parsed without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicops.flow.applying import approved_digests
    from topicops.flow.inspecting import record_drift
    from topicops.flow.planning import make_plan
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
    from topicops.flow.verifying import check_topics
    from topicops.flow.whole_runs import apply_own_plan, apply_plan, verify_cluster, verify_plan

_NAMES = {
    "applying": ("approved_digests",),
    "inspecting": ("record_drift",),
    "runs.outcomes": ("read_outcomes",),
    "planning": ("make_plan",),
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
    "check_topics",
    "diff",
    "diff_once",
    "gate",
    "home_folder",
    "load_plan",
    "make_plan",
    "note_verified",
    "open_run",
    "plan",
    "plan_held",
    "read_outcomes",
    "record_drift",
    "render",
    "render_report",
    "report",
    "report_file",
    "run_report",
    "run_result",
    "save_plan",
    "shown_report",
    "snapshot",
    "validate",
    "verify",
    "verify_cluster",
    "verify_plan",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

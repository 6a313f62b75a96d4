"""The steps with the world plugged in: each function reads a run's artifacts, does one step, writes the next artifact.

Commands and Airflow tasks both call these, so that they cannot differ. This is the only place that chooses which edge
fills which port. Heavy edges (Spark, brokers, ZooKeeper) are imported by the step that needs them, so that a DAG file
is parsed, and `validate` runs, without them. So are the modules of this package, by the first use of their names.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicops.flow.applying import apply, apply_plan, approval
    from topicops.flow.authoring import drift, import_topics, tell_drift, topic_id
    from topicops.flow.inspecting import doctor, topics
    from topicops.flow.planning import diff, gate, make_plan, plan, snapshot, validate
    from topicops.flow.reporting import render, render_report
    from topicops.flow.run import Engine, Facts, Run, home_folder, load_plan, open_run, save_plan
    from topicops.flow.verifying import (
        quality_after,
        quality_before,
        report,
        run_report,
        verify,
        verify_cluster,
        verify_or_say_why,
        verify_plan,
    )

__all__ = [
    "Engine",
    "Facts",
    "Run",
    "apply",
    "apply_plan",
    "approval",
    "diff",
    "doctor",
    "drift",
    "gate",
    "home_folder",
    "import_topics",
    "load_plan",
    "make_plan",
    "open_run",
    "plan",
    "quality_after",
    "quality_before",
    "render",
    "render_report",
    "report",
    "run_report",
    "save_plan",
    "snapshot",
    "tell_drift",
    "topic_id",
    "topics",
    "validate",
    "verify",
    "verify_cluster",
    "verify_or_say_why",
    "verify_plan",
]

_NAMES = {
    "authoring": ("drift", "import_topics", "tell_drift", "topic_id"),
    "applying": ("apply", "apply_plan", "approval"),
    "inspecting": ("doctor", "topics"),
    "planning": ("diff", "gate", "make_plan", "plan", "snapshot", "validate"),
    "verifying": (
        "quality_after",
        "quality_before",
        "report",
        "run_report",
        "verify",
        "verify_cluster",
        "verify_or_say_why",
        "verify_plan",
    ),
    "run": ("Engine", "Facts", "Run", "home_folder", "load_plan", "open_run", "save_plan"),
    "reporting": ("render", "render_report"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

"""The begin of each task: the run's folder, its params, the states of its tasks, and what an error of ours means."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import NoReturn

import msgspec
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk.types import RuntimeTaskInstanceProtocol as TaskInstance

from topicops.flow.reporting import note_problem
from topicops.flow.runs.files import diagnostics_named
from topicops.flow.runs.guards import place_of, require_same_home
from topicops.flow.runs.memory import overtaken_by
from topicops.flow.runs.run import COMMIT_ADDRESS, EnvironmentRun
from topicops.model.errors import SpecError, TopicopsError, UsageError
from topicops.model.plans.plan import Approval
from topicops.model.printable import printable
from topicops.model.waits import told_waits
from topicops.on_airflow.connections import from_airflow, mask_settings
from topicops.on_airflow.plugged import REVIEWS, Tools
from topicops.on_airflow.site import MODES, NO_RETRY, Site
from topicops.plugged import moves

log = logging.getLogger(__name__)

XComValue = dict[str, object]
"""Value that a task returns: paths, digests and counts."""
FIRST_TASKS = ("validate", "load")
"""First tasks of the pipeline and the drift check, and of the approval."""
HOME_KEY = "home"
"""Key of the XCom with the place of the home."""


@contextmanager
def opened(site: Site, context: Context) -> Iterator[tuple[Tools, EnvironmentRun]]:
    """Give the steps and this run's folder; an error becomes Airflow's, with retries where they can help."""
    tools, ti = site.tools or Tools(), context["ti"]
    try:
        run = task_run(tools, site, context)
        keep_to_one_home(run, ti)
        try:
            with told_waits(log.info):
                yield tools, run
        except TopicopsError as error:
            if not isinstance(error, SpecError):  # its problems are in the run's folder, each with its place
                note_problem(run, ti.task_id, str(error))
            raise
    except NO_RETRY as error:
        found = diagnostics_named(site.topics, error.diagnostics) if isinstance(error, SpecError) else ()
        if found:
            log.warning("%s", "\n".join(f"{each.file}:{each.line}: {each.code} {each.summary}" for each in found))
        raise AirflowFailException(str(error)) from error
    except TopicopsError as error:
        raise AirflowException(str(error)) from error


def task_run(tools: Tools, site: Site, context: Context) -> EnvironmentRun:
    """Open the folder of this task's run."""
    mask_settings()
    ti = context["ti"]
    return tools.flow.open_run(
        environment=site.environment,
        topics=site.topics,
        group=ti.dag_id,
        run_id=ti.run_id,
        connections=from_airflow,
        progress=log.info,
        version=bundle_version(ti, site.topics),
        pinned=context["params"].get("commit") or None,
        moves=moves(),
    )


def keep_to_one_home(run: EnvironmentRun, ti: TaskInstance) -> None:
    """Raise ``UsageError`` when ``TOPICOPS_HOME`` here is not that of the run's first task, which hands it on."""
    if ti.task_id in FIRST_TASKS:
        ti.xcom_push(key=HOME_KEY, value=msgspec.to_builtins(place_of(run.home)))
        return
    handed_on = (ti.xcom_pull(task_ids=first, key=HOME_KEY) for first in FIRST_TASKS)
    require_same_home(run.home, next(filter(None, handed_on), None))


def bundle_version(ti: TaskInstance, topics: Path) -> str | None:
    """Give the commit of the DAG bundle; None means that it knows no versions, or that the topics are elsewhere."""
    bundle = getattr(ti, "bundle_instance", None)
    root = getattr(bundle, "repo_path", None) or getattr(bundle, "path", None)
    is_inside = root is not None and topics.resolve().is_relative_to(Path(root).resolve())
    return getattr(bundle, "version", None) if is_inside else None


def keep_commit_address(run: EnvironmentRun, ti: TaskInstance, topics: Path) -> str:
    """Keep for the run's page where the forge shows the commit of the bundle; empty means that it is not known."""
    version = bundle_version(ti, topics)
    view_url = getattr(getattr(ti, "bundle_instance", None), "view_url", None)
    address = str(view_url(version) or "") if version and view_url else ""
    if not address.startswith(("https://", "http://")):
        return ""
    run.store.write_text(COMMIT_ADDRESS, address)
    return address


# ---- the params of the run ----


def is_whole(context: Context) -> bool:
    """Say whether it is a run of the pipeline: that of an approval is of a part."""
    return "mode" in context["params"]


def mode_of(context: Context) -> str:
    """Give ``plan`` or ``apply``; ``plan`` where the form was left empty."""
    return str(context["params"]["mode"] or MODES[0])


def only_of(context: Context) -> str | None:
    return context["params"].get("only") or None


def triggered_by(context: Context) -> str | None:
    """Give the Airflow user or the run that triggered this one; None means that the schedule did."""
    return context["dag_run"].triggering_user_name or None


def refuse_unknown_params(context: Context) -> None:
    """Raise ``UsageError`` for a name that is no param of this DAG: Airflow takes any, and it would mean nothing."""
    given = getattr(context["dag_run"], "conf", None) or {}
    known = set(context["dag"].params) if "dag" in context else set(given)
    if unknown := sorted(set(given) - known):
        near = get_close_matches(unknown[0].lower(), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(sorted(known))}"
        raise UsageError(
            f"{printable(unknown[0])} is no param of this DAG: {hint} Nothing was read or sent; start a new run"
        )


def refuse_overtaken(run: EnvironmentRun, context: Context) -> None:
    """Raise ``AirflowFailException`` in a run that was cleared after a later one had planned: it is stale."""
    dag_run = context["dag_run"]
    if not dag_run.clear_number:
        return
    if later := overtaken_by(run.home, run.environment, dag_run.run_after):
        raise AirflowFailException(
            f"this run was cleared, and {later} has planned since: its files and its plan may be older than what was "
            "done; nothing is sent. Start a new run, or clear that one"
        )


def approvals_of_params(run: EnvironmentRun, context: Context) -> tuple[tuple[Approval, ...], tuple[str, ...]]:
    """Give what the params ``approved`` and ``reviews`` approve, and why a review does not count.

    The run's plan is there already. The author of its changes is not known any better: whoever triggers it is taken
    for the author too.
    """
    found = [approvals_of(run, context["params"].get("reviews") or ()) for approvals_of in REVIEWS]
    reviewed = tuple(chain.from_iterable(each.approvals for each in found))
    given, name = frozenset(context["params"].get("approved") or ()), triggered_by(context)
    plan = run.read_plan() if given else None
    every = frozenset(gated.digest for gated in plan.changes) if plan else frozenset()
    problems = {key: plan.key_problem(key) for key in sorted(given - every)} if plan else {}
    digests = every if "" in problems.values() else given & every
    objections = (
        *chain.from_iterable(each.objections for each in found),
        *(f"approved: no change of this plan, and {problem}" for problem in problems.values() if problem),
    )
    for objection in objections:
        log.warning("%s", objection)
    if not digests:
        return reviewed, objections
    by_parameter = Approval(
        digests=digests,
        way="parameter",
        approver=name,
        signature=f"{name or 'unknown'} (by parameter)",
        given_at=context["dag_run"].run_after,
        authors=frozenset({name} if name else ()),
    )
    return (by_parameter, *reviewed), objections


# ---- the tasks of the run ----


def task_states(context: Context) -> Mapping[str, str | None]:
    """Give the state of each task of this run, by task id."""
    ti = context["ti"]
    states: Mapping[str, Mapping[str, str | None]] = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id])
    return states.get(ti.run_id, {})


def failed_tasks(context: Context) -> list[str]:
    """Name the tasks of the run that failed; not those that could not start because another failed."""
    # Without `announce`: it changes nothing, and Airflow may have stored the events of one whose answer came late.
    states = {name: state for name, state in task_states(context).items() if not name.startswith("announce")}
    failed = sorted(name for name, state in states.items() if state == "failed")
    return failed or sorted(name for name, state in states.items() if state == "upstream_failed")


def skip(reason: str) -> NoReturn:
    """Skip the task. Airflow shows the reason of a skip nowhere, so the log has it."""
    log.info("%s", reason)
    raise AirflowSkipException(reason)

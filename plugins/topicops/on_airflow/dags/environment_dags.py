"""The DAGs of one environment: their tasks and the order of these. What a task does is in ``tasks``.

The trigger rules decide whether a delete can run after a failure or a rejection, so each is here for a reason:

- ``gate`` (or ``approve``) is a direct upstream of every task that changes the cluster; its skip or failure
  reaches each of them directly. Airflow's rejection skips only direct downstream tasks.
- create, expand, configure and reassign have no edge between them; the lease keeps them apart.
- delete runs when none of the three failed. Kinds without a change are skipped, so a skip is no failure.
- verify runs in any case: what was sent is verified, also when some of it failed. It skips itself where nothing was.
- quality_after runs in any case too, because a cluster that nobody changed may still be in a state that no rule has
  judged; ``gate`` skips it by name where it is not needed, and it skips itself after a failure or a rejection without
  anything sent.
- announce is there once for each group of topics that ``verify`` leaves to it. The run does not fail with it.
- ``report`` has ``all_done`` too: it waits for all tasks that could still run, and includes all of them.

Which tasks have nothing to do, ``snapshot``, ``gate`` and ``load`` say by name (``operators``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, BaseOperator, Context, Param, chain, get_current_context
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from topicops.model.errors import UsageError
from topicops.model.plans.changes import ACTIONS
from topicops.model.printable import printable
from topicops.on_airflow.airflow_inside import IS_3_2, DagRunType
from topicops.on_airflow.dags.operators import STEP_OPERATORS, AskForApproval, AskPerson
from topicops.on_airflow.dags.params import FOR_CI, digests_param, only_param, pipeline_params
from topicops.on_airflow.for_dag_files import kafka_alias, topics_alias
from topicops.on_airflow.names import TAG
from topicops.on_airflow.plugged_at_start import MORE_DAGS, TELLERS
from topicops.on_airflow.site import MODES, Options, Site, duration_of, patience, resolved

if TYPE_CHECKING:
    from airflow.sdk import BaseNotifier

TAGS = (TAG, "kafka")
DEFAULT_ARGS: Mapping[str, object] = {
    "owner": "topicops",
    "retries": 3,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": 3.0,  # after 10 to 20 s, 30 to 60 s, 90 to 180 s: an outage of minutes is bridged
    "max_retry_delay": timedelta(minutes=5),
    "execution_timeout": timedelta(hours=2),
}
"""Every task may run twice: steps write whole artifacts, and a change that took effect is recognised as already so."""

PIPELINE_DOC = """
Compares the topic files with the live cluster, sends the changes that may run unattended, and verifies them.
It never waits for a person: what needs an approval is held, and asked about in `{approval}`.

`mode` **plan** changes nothing; **apply** sends changes. `approved` takes the digests of changes that somebody has
approved elsewhere, `reviews` the signed reviews of a pull request; `commit` pins the run to the files of that commit;
`only` limits it to topics whose name matches the pattern.
"""
DRIFT_DOC = """
Shows where the live cluster of `{environment}` differs from the topic files, and what `{pipeline}` would change.
It only reads: no lease, no question, no change. A difference does not fail the run; a failed task does.
"""
APPROVAL_DOC = """
Asks one person about one set of held changes of `{environment}`. Approve sends exactly those whose precondition still
holds; Reject, or no answer in time, sends nothing. `{pipeline}` starts it, once for each set.
"""

LOOKING_BACK = frozenset(("verify", "quality_after", "report"))
"""Steps after the changes, which run whatever happened: tried again once, so that a failure is reported soon."""
ENVIRONMENT_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
ENVIRONMENT_NAME_RULE = "an environment's name has only letters, digits, underscore and dash, at most 100"
"""Rule for names, as in `validate`; the length is Airflow's limit for a tag."""
TASK_DOCS: Mapping[str, str] = {
    "validate": "Reads the files and writes the topics that they describe, or logs every problem of every file and "
    "fails. A run that is pinned to a commit first waits until the folder of the files is at it.",
    "snapshot": "Reads the live cluster with partition states. Where nothing differs from the last good run, the run "
    "ends here.",
    "quality_before": "May the inputs be trusted? A critical rule that fails stops the run here. Spark compares files "
    "and cluster here, too: to start it again for diff costs more than both.",
    "diff": "The differences between files and cluster, which Spark has found in quality_before.",
    "plan": "The ordered changes, and what is blocked.",
    "gate": "Which changes run, which are held, which are skipped; in mode apply, also the newest held set. Tasks that "
    "have nothing to do in this run are skipped by name, so that Airflow starts no process for them.",
    "load": "A new plan with only the changes in question, and the question as Markdown. Skips this task, and so all "
    "others but the report, when a change is not needed any more or cannot be approved.",
    **{action: f"Sends the changes that {action} topics, if they may run or were approved." for action in ACTIONS},
    "reassign": "Accepts the moves of replicas that may run or were approved, and makes their first step, of a few "
    "seconds. Later steps carry them on; no task waits for their end.",
    "verify": "Verifies each changed topic in both views, also after a failure. A failed check fails the run in "
    "report, after the rules. Each topic that is healthy gets an asset event.",
    "announce": "Emits the asset events of one group of healthy topics: Airflow cannot store very many in one request.",
    "quality_after": "Is the result healthy? Fails on a critical rule. Also in mode plan; after a failure, if "
    "something was sent.",
    "report": "What was done, what failed and what to do next. Fails the run when any task, outcome or check failed. "
    "The XCom result has the same for CI, also when the run fails.",
    "drift": "One log line for each difference between cluster and files, and counts. A difference fails nothing.",
}
"""Text that Airflow shows of each task."""


def environments(topics: Path) -> tuple[str, ...]:
    """Name the environments that have a file; without those whose name can be no part of a DAG's name."""
    return tuple(name for name in _file_names(topics) if ENVIRONMENT_NAME.fullmatch(name))


def misnamed(topics: Path) -> tuple[str, ...]:
    """Give a sentence for each file of an environment whose name can be no part of a DAG's name."""
    return tuple(
        f"environments/{printable(name)}.yaml has no DAGs: {ENVIRONMENT_NAME_RULE}; rename it"
        for name in _file_names(topics)
        if not ENVIRONMENT_NAME.fullmatch(name)
    )


def _file_names(topics: Path) -> list[str]:
    """Return the names without exceptions and other parts of an environment."""
    return [path.stem for path in sorted((topics / "environments").glob("*.yaml")) if "." not in path.stem]


@dataclass(frozen=True, slots=True)
class EnvironmentDags:
    """The DAGs of one environment; a loop over them gives all, those of features too."""

    pipeline: DAG
    approval: DAG
    drift: DAG
    more: tuple[DAG, ...] = ()
    """DAGs of features."""

    def __iter__(self) -> Iterator[DAG]:
        return iter((self.pipeline, self.approval, self.drift, *self.more))


def environment_dags(
    environment: str,
    topics: Path,
    *,
    schedule: object = None,
    drift_schedule: object = None,
    mode: str | None = None,
    default_args: Mapping[str, object] | None = None,
    tags: Sequence[str] = (),
    notifiers: Sequence[BaseNotifier] = (),
    pool: str | None = None,
    access_control: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    fail_on: Collection[str] = (),
) -> EnvironmentDags:
    """Return the DAGs of one environment. What is left out comes from the environment's file, or else the settings.

    Args:
        environment: The name of its file in ``<topics>/environments/``, without ``.yaml``.
        topics: The folder of the topic files.
        schedule: When the pipeline runs: ``every 5m``, ``none``, a cron, or any other schedule that Airflow takes.
        drift_schedule: When the drift DAG runs, in the same forms.
        mode: ``plan`` or ``apply``: the default of the pipeline's param ``mode``.
        default_args: Of each task, as Airflow's; they win over our own.
        tags: Added to our own.
        notifiers: Told of what happens, each cause once; see ``notifying``.
        pool: The pool of each task.
        access_control: Role to rights, as Airflow's.
        fail_on: ``unhealthy``: a run fails at whose end the cluster is not healthy.

    Raises ``UsageError``: A schedule, a mode, the name or a word of ``fail_on`` is none.
    """
    if not ENVIRONMENT_NAME.fullmatch(environment):
        raise UsageError(f"{environment!r}: {ENVIRONMENT_NAME_RULE}")
    options = Options(
        schedule=schedule,
        drift_schedule=drift_schedule,
        mode=mode,
        default_args=default_args or {},
        tags=tags,
        notifiers=notifiers,
        pool=pool,
        access_control=access_control,
        fail_on=frozenset(fail_on),
    )
    file = topics / "environments" / f"{environment}.yaml"
    site = Site(environment=environment, topics=topics, options=resolved(options, environment, file))
    more = tuple(dag_of(site) for dag_of in MORE_DAGS)
    return EnvironmentDags(pipeline_dag(site), approval_dag(site), drift_dag(site), more)


def pipeline_dag(site: Site) -> DAG:
    """Return ``topic_pipeline_<environment>``: from the files to a verified cluster; never waits for a person."""
    with DAG(
        schedule=site.options.schedule,
        max_active_runs=1,
        params=pipeline_params(site.options.mode or MODES[0]),
        deadline=late_alert(site),
        **shared(site, "pipeline"),
        doc_md=PIPELINE_DOC.format(approval=site.approval_id),
    ) as dag:
        gate = _step(site, "pipeline", "gate")
        chain(_looking(site, "pipeline"), gate)
        ask = AskForApproval(
            task_id="ask",
            trigger_dag_id=site.approval_id,
            logical_date=None,
            skip_when_already_exists=True,
            doc_md=AskForApproval.__doc__,
        )
        gate >> ask >> _changes_to_report(site, "pipeline", gate)
    return dag


def approval_dag(site: Site) -> DAG:
    """Return ``topic_approval_<environment>``: asks about one held set and sends what is approved."""
    with DAG(
        schedule=None,
        params={
            "digests": digests_param(
                "Changes to ask about", "The 64 digits of each held change. Empty: all that are held now."
            ),
            "held_set": Param(
                None,
                type=["null", "string"],
                title="Held set",
                section=FOR_CI,
                description="All that are held now, only if their set has this digest. Empty: whatever their set is.",
            ),
        },
        disable_bundle_versioning=True,  # an answer may come hours later: the files of now count, not the run's own
        **shared(site, "approval"),
        doc_md=APPROVAL_DOC.format(environment=site.environment, pipeline=site.pipeline_id),
    ) as dag:
        load = _step(site, "approval", "load")
        approve = AskPerson(
            task_id="approve",
            site=site,
            subject=f"Send to {site.environment}?",
            patience=patience(),
            ignore_downstream_trigger_rules=False,
            retries=0,  # a timeout is an answer; a second try would ask again
            execution_timeout=None,
        )
        load >> approve
        _changes_to_report(site, "approval", approve)
    return dag


def drift_dag(site: Site) -> DAG:
    """Return ``topic_drift_<environment>``: the pipeline up to the plan, then a list of the differences."""
    with DAG(
        schedule=site.options.drift_schedule,
        max_active_runs=1,
        params={"only": only_param()},
        **shared(site, "drift"),
        doc_md=DRIFT_DOC.format(environment=site.environment, pipeline=site.pipeline_id),
    ) as dag:
        chain(_looking(site, "drift"), _step(site, "drift", "drift"))
    return dag


def shared(site: Site, kind: str) -> dict[str, Any]:
    """Give the name of a DAG of this kind, and what all DAGs of an environment have in common."""
    options = site.options
    pool = {"pool": options.pool} if options.pool else {}
    owner = {"owner": options.owner} if options.owner else {}
    default_args = {**DEFAULT_ARGS, **owner, **pool, **options.default_args}
    return {
        "dag_id": f"topic_{kind}_{site.environment}",
        "dag_display_name": f"{site.environment}: {kind}",
        # A backfill would send the same changes once for each day of a range.
        "allowed_run_types": frozenset(set(DagRunType) - {DagRunType.BACKFILL}),
        "catchup": False,
        "is_paused_upon_creation": False,
        "default_args": default_args,
        "owner_links": {str(default_args["owner"]): options.owner_link} if options.owner_link else {},
        "tags": [*TAGS, site.environment, *options.tags],
        "access_control": options.access_control,
        "on_failure_callback": partial(tell_of_failure, site),
    }


def _looking(site: Site, kind: str) -> BaseOperator:
    """Make the tasks up to the plan; returns the last one."""
    steps = [_step(site, kind, name) for name in ("validate", "snapshot", "quality_before", "diff", "plan")]
    chain(*steps)
    return steps[-1]


def _step(site: Site, kind: str, task_id: str, trigger_rule: str = "all_success", **given: Any) -> BaseOperator:
    def run_step() -> object:
        from topicops.on_airflow.tasks.steps import STEPS

        return STEPS[kind][task_id](site, get_current_context())

    fewer = {"retries": 1} if task_id in LOOKING_BACK else {}
    return STEP_OPERATORS.get(task_id, PythonOperator)(
        task_id=task_id,
        retries=int(str({**DEFAULT_ARGS, **fewer, **site.options.default_args}["retries"])),
        python_callable=run_step,
        trigger_rule=trigger_rule,
        doc_md=TASK_DOCS[task_id],
        **given,
    )


def _changes_to_report(site: Site, kind: str, before: BaseOperator) -> BaseOperator:
    """Make what two DAGs share: the kinds of changes after ``before``, then verification and the report."""
    aliases = [topics_alias(site.environment), kafka_alias(site.environment)]

    def announce_group(first: int, server: str | None = None) -> None:
        from topicops.on_airflow.tasks.changes import announce

        announce(site, get_current_context(), first, server)

    first = [_step(site, kind, action) for action in ACTIONS if action != "delete"]
    delete = _step(site, kind, "delete", "none_failed")
    verify = _step(site, kind, "verify", "all_done", outlets=aliases)
    quality_after = _step(site, kind, "quality_after", "all_done")
    report = _step(site, kind, "report", "all_done")
    # One task for each group of topics that `verify` has returned; none after a run that changed few.
    announce = PythonOperator.partial(
        task_id="announce",
        python_callable=announce_group,
        outlets=aliases,
        max_active_tis_per_dagrun=1,  # two at once wait for each other's lock of SQLite, until the worker gives up
        doc_md=TASK_DOCS["announce"],
    ).expand(op_args=verify.output)
    announce >> report
    before >> [*first, delete]
    first >> delete
    [*first, delete] >> verify
    chain(verify, quality_after, report)
    # One failed task makes all below it `upstream_failed` at once, while its siblings still run.
    [*first, delete] >> report
    return report


# ---- what Airflow calls beside the tasks ----


def tell_of_failure(site: Site, context: Context) -> None:
    """Tell the notifiers of the DAG file of a failed run, unless the run's report has told.

    The DAG processor calls it, also when no task could report. ``listening`` tells the notifiers of the setting: it
    needs neither the DAG file nor its bundle.
    """
    from topicops.flow.runs.run import open_run
    from topicops.on_airflow.plugged import after_reading

    dag_run = context["dag_run"]
    run = open_run(environment=site.environment, topics=site.topics, group=dag_run.dag_id, run_id=dag_run.run_id)
    for teller in TELLERS:
        teller.tell_of_end(run, str(context.get("reason") or "a task failed"), site.options.notifiers, context)
    after_reading(run)


def late_alert(site: Site) -> DeadlineAlert | None:
    """Give the alert of the pipeline; None where no setting asks for it. Raises ``UsageError``."""
    within = duration_of("TOPICOPS_RUN_WITHIN", "0s")
    if not within or not any(teller.has_setting() for teller in TELLERS):
        return None
    named: dict[str, Any] = {} if IS_3_2 else {"name": "a run takes too long"}
    return DeadlineAlert(
        **named,
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=within,
        callback=SyncCallback(tell_late, kwargs={"environment": site.environment, "within": str(within)}),
    )


def tell_late(*, environment: str, within: str, context: Mapping[str, Any]) -> None:
    """Tell the notifiers of the setting that this run has not ended in time; Airflow gives its ``context`` as JSON."""
    from topicops.flow.runs.run import open_run

    dag_run = context["dag_run"]
    run = open_run(environment=environment, topics=Path(), group=dag_run["dag_id"], run_id=dag_run["dag_run_id"])
    for teller in TELLERS:
        teller.tell_setting_of_end(run, f"it has not ended within {within}")

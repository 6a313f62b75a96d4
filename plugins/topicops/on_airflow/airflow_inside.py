"""Inner parts of Airflow, which it does not document as public: no other module uses any but through this one.

Each is loaded when it is asked for: a process that parses DAG files must not load Airflow's database. A test names the
release in which all were checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow import __version__

if TYPE_CHECKING:
    from airflow.api_fastapi.core_api.security import GetUserDep as GetUserDep
    from airflow.api_fastapi.core_api.security import requires_access_dag as requires_access_dag
    from airflow.models.dag import DagModel as DagModel
    from airflow.models.dagbundle import DagBundleModel as DagBundleModel
    from airflow.models.dagrun import DagRun as DagRun
    from airflow.models.errors import ParseImportError as ParseImportError
    from airflow.models.hitl import HITLDetail as HITLDetail
    from airflow.models.taskinstance import TaskInstance as TaskInstance
    from airflow.models.xcom import XComModel as XComModel
    from airflow.sdk.api.datamodels._generated import DagRunType as DagRunType
    from airflow.sdk.execution_time.comms import CreateHITLDetailPayload as CreateHITLDetailPayload
    from airflow.sdk.execution_time.comms import HITLDetailRequestResult as HITLDetailRequestResult
    from airflow.sdk.execution_time.hitl import HITLUser as HITLUser
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS as SUPERVISOR_COMMS
    from airflow.sdk.observability.stats import Stats as Stats
    from airflow.utils.helpers import build_airflow_dagrun_url as build_airflow_dagrun_url
    from airflow.utils.session import create_session as create_session
    from airflow.utils.state import State as State

PLACES: Mapping[str, str] = {
    "CreateHITLDetailPayload": "airflow.sdk.execution_time.comms:CreateHITLDetailPayload",
    "DagBundleModel": "airflow.models.dagbundle:DagBundleModel",
    "DagModel": "airflow.models.dag:DagModel",
    "DagRun": "airflow.models.dagrun:DagRun",
    "DagRunType": "airflow.sdk.api.datamodels._generated:DagRunType",
    "GetUserDep": "airflow.api_fastapi.core_api.security:GetUserDep",
    "HITLDetail": "airflow.models.hitl:HITLDetail",
    "HITLDetailRequestResult": "airflow.sdk.execution_time.comms:HITLDetailRequestResult",
    "HITLUser": "airflow.sdk.execution_time.hitl:HITLUser",
    "ParseImportError": "airflow.models.errors:ParseImportError",
    "SUPERVISOR_COMMS": "airflow.sdk.execution_time.task_runner:SUPERVISOR_COMMS",
    "Stats": "airflow.sdk.observability.stats:Stats",
    "State": "airflow.utils.state:State",
    "TaskInstance": "airflow.models.taskinstance:TaskInstance",
    "TriggerDagRun": "airflow.sdk.execution_time.comms:TriggerDagRun",
    "XComModel": "airflow.models.xcom:XComModel",
    "build_airflow_dagrun_url": "airflow.utils.helpers:build_airflow_dagrun_url",
    "create_session": "airflow.utils.session:create_session",
    "requires_access_dag": "airflow.api_fastapi.core_api.security:requires_access_dag",
}
"""Module of each name, and its name there."""
IS_3_2 = __version__.startswith("3.2.")
"""Whether this is the oldest Airflow that we support, which lacks some of what the others have."""


def __getattr__(name: str) -> object:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = PLACES[name].partition(":")
    return getattr(import_module(module), attribute)


def metrics_are_on() -> bool:
    from airflow.sdk import conf

    ways = ("statsd_on", "statsd_datadog_enabled", "otel_on")
    return any(conf.getboolean("metrics", way, fallback=False) for way in ways)


def begin_metrics() -> None:
    """Begin Airflow's metrics outside a task: in the DAG processor, the scheduler and the API server."""
    from airflow.sdk import conf
    from airflow.sdk.observability.metrics import stats_utils
    from airflow.sdk.observability.stats import Stats

    initialize: Any = Stats.initialize
    factory_of: Any = stats_utils.get_stats_factory
    if IS_3_2:
        initialize(factory=factory_of(Stats))
        return
    legacy = conf.getboolean("metrics", "legacy_names_on", fallback=True)
    initialize(factory=factory_of(), export_legacy_names=legacy)


def count(environment: str, counts: Mapping[str, float]) -> None:
    """Set gauges ``topicops.<environment>.<name>`` by Airflow's own metrics: StatsD or OpenTelemetry."""
    from airflow.sdk.observability.stats import Stats

    for name, value in counts.items():
        Stats.gauge(f"topicops.{environment}.{name}", value)


def trigger_run(dag_id: str, run_id: str, *, said: str) -> None:
    """Start a run of another DAG from within a task that goes on. Raises ``RuntimeError`` with Airflow's reason.

    Airflow's own operator ends its task with the request.
    """
    from airflow.sdk.execution_time.comms import TriggerDagRun
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

    noted = {"note": said} if "note" in TriggerDagRun.model_fields else {}
    answer = SUPERVISOR_COMMS.send(TriggerDagRun(dag_id=dag_id, run_id=run_id, **noted))
    if problem := getattr(answer, "error", None):
        raise RuntimeError(f"{problem.value}: {getattr(answer, 'detail', None)}")

"""Which connections each task asks for, in a whole run with the real steps on brokers that hold each to its rights."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import get_current_context

from fixtures.guarded_broker import GuardedBroker
from fixtures.live import look
from fixtures.quality import quality_report
from fixtures.spec_folder import write_environment, write_topic
from topicops.features.quality import judging
from topicops.flow import single_steps
from topicops.flow.engines import DiffEngine
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.flow.single_steps import Summary
from topicops.model.ports import ConnectionFields, ConnectionSource
from topicops.model.runs.results import QualityReport
from topicops.on_airflow.dags.environment_dags import pipeline_dag
from topicops.on_airflow.plugged import Tools
from topicops.on_airflow.site import Site

pytestmark = pytest.mark.usefixtures("airflow_database", "spark")

READS = {"zookeeper_local", "kafka_reader"}


@dataclass
class WatchedFlow:
    """The real steps, which notes the connections that each task asks for."""

    asked: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By task."""

    def open_run(self, *, connections: ConnectionSource, **rest: Any) -> EnvironmentRun:
        def watched(connection_id: str) -> ConnectionFields:
            self.asked[get_current_context()["ti"].task_id].add(connection_id)
            return connections(connection_id)

        return open_run(connections=watched, **rest)

    def diff(self, run: EnvironmentRun, *, engine: DiffEngine) -> Summary:
        return single_steps.diff(run)

    def beside(self, run: EnvironmentRun, engine: DiffEngine) -> AbstractContextManager[None]:
        return nullcontext()

    def before(self, run: EnvironmentRun, engine: DiffEngine) -> QualityReport:
        report = quality_report("before", ())
        run.store.write_value("quality-before.json", report)
        return report

    def after(self, run: EnvironmentRun, engine: DiffEngine) -> QualityReport:
        return judging.after(run, engine)

    def __getattr__(self, step: str) -> Callable[..., object]:
        return getattr(single_steps, step)


@pytest.fixture
def topics(guarded_broker: GuardedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A change of each kind is due; the four connections are known to Airflow."""
    zookeeper = json.dumps({"conn_type": "zookeeper", "host": guarded_broker.cluster.zookeeper_hosts})
    for name, value in {**guarded_broker.variables, "AIRFLOW_CONN_ZOOKEEPER_LOCAL": zookeeper}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path / "home"))
    guarded_broker.make("owned.growing", "owned.slow", "owned.going")
    spec = guarded_broker.spec(connection="reader", applier="applier", deleter="deleter")
    folder = tmp_path / "topics"
    write_environment(folder, "local", cluster={**spec, "zookeeper": {"connection": "zookeeper_local"}})
    write_topic(folder, "owned.coming", spec={})
    write_topic(folder, "owned.growing", spec={"partitions": 2, "keyed": False})
    write_topic(folder, "owned.slow", spec={"configs": {"retention.ms": "8d"}})
    write_topic(folder, "owned.going", lifecycle={"state": "absent", "reason": "Over."})
    yield folder
    guarded_broker.clear()


@pytest.mark.soak
def test_each_task_asks_for_its_own_connections_and_those_that_its_run_still_needs(
    topics: Path, guarded_broker: GuardedBroker
) -> None:
    watched = WatchedFlow()
    dag = pipeline_dag(Site(environment="local", topics=topics, tools=Tools(flow=watched, quality=[watched])))

    run = dag.test(run_conf={"mode": "apply"})

    assert run.state == "success", {ti.task_id: ti.state for ti in run.get_task_instances()}
    assert watched.asked == {
        "snapshot": READS,
        "plan": {"kafka_reader", "kafka_applier", "kafka_deleter"},
        "create": READS | {"kafka_applier", "kafka_deleter"},
        "expand": READS | {"kafka_applier", "kafka_deleter"},
        "configure": READS | {"kafka_applier", "kafka_deleter"},
        "delete": READS | {"kafka_deleter"},
        "verify": READS,
        "quality_after": READS,
    }
    live = look(guarded_broker.cluster).topics
    assert live["owned.growing"].partitions == 2
    assert {name for name in live if name.startswith("owned.")} == {"owned.coming", "owned.growing", "owned.slow"}

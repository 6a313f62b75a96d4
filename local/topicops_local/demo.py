"""``topicops demo``: the whole loop on a real cluster and a real Airflow, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from topicops.cli.output import new_run_id, print_result
from topicops.model.errors import ArtifactError, ExitStatus, TopicopsError, UsageError, status_after_signal
from topicops.model.release import NEWEST, NO_ZOOKEEPER, REASSIGNMENTS_IN_TOPICS, USUAL
from topicops_local.readiness import HANGS_S

if TYPE_CHECKING:
    from topicops.flow.runs.run import Run
    from topicops.model.plans.plan import GatedChange, Plan
    from topicops_local.airflow import LocalAirflow
    from topicops_local.airflow_client import LocalAirflowClient
    from topicops_local.cluster import LocalCluster

ENVIRONMENT = "local"
PIPELINE, APPROVAL = f"topic_pipeline_{ENVIRONMENT}", f"topic_approval_{ENVIRONMENT}"
PLAN_TAB = "plugin/topicops-plan"
MOVES = f"topic_moves_{ENVIRONMENT}"
STEPS = 8
STEP_MOVES_EVERY = "15s"
UNFINISHED = {"queued", "running"}
LOOK_S = 5.0
"""Between two looks at Airflow's services."""
ENDING = (signal.SIGTERM, signal.SIGHUP)


def demo_command(
    topics: Annotated[Path, typer.Option("--topics", help="The folder of specs.")] = Path("topics"),
    dags: Annotated[Path, typer.Option("--dags", help="The folder of DAG files.")] = Path("dags"),
    kafka: Annotated[
        str | None, typer.Option("--kafka", help=f"A release (2.5) or a version (2.5.1) of Kafka. Default: {USUAL}.")
    ] = None,
    source: Annotated[
        Literal["kafka", "zookeeper"] | None,
        typer.Option("--source", help="kafka: a cluster with KRaft, of the newest Kafka unless --kafka names one."),
    ] = None,
) -> None:
    """Start a cluster and Airflow, plan, apply and verify the topics of this checkout, and plan again.

    One held change is left to you: Airflow asks about it. With --kafka or --source it uses a copy of the specs whose
    environment names that Kafka. On a terminal both stay up until Ctrl-C, otherwise they are stopped. The exit status
    is 0 only if all else was verified.
    """
    from topicops.edges.extras import require_extra
    from topicops.flow.runs.run import home_folder, scratch_folder
    from topicops_local.airflow import begin_airflow
    from topicops_local.cluster import LocalCluster
    from topicops_local.demo_start import copy_files, fit_to_kafka
    from topicops_local.jars import release_of, usual_version, version_of

    require_extra("airflow")
    require_checkout(topics, dags)
    usual = usual_version() if source != "kafka" else version_of(str(NEWEST))
    version = usual if kafka is None else version_of(kafka)
    kraft = source == "kafka" or (source is None and release_of(version) >= NO_ZOOKEEPER)
    for number in ENDING:
        signal.signal(number, _end)
    home = scratch_folder(home_folder()) / "demo"
    shutil.rmtree(home / "airflow", ignore_errors=True)
    for folder in ("runs", "last-good", "held", "moves"):
        shutil.rmtree(home / folder, ignore_errors=True)
    started = time.monotonic()
    if kafka is not None or source is not None:
        topics, dags = copy_files(topics, dags, home / "files")
        for line in fit_to_kafka(topics, ENVIRONMENT, release_of(version), kraft=kraft):
            _detail(line)
    web, coordinator, *brokers = _free_ports(5)
    zookeeper = None if kraft else coordinator
    os.environ.update(_variables(home, brokers, zookeeper))
    moves = release_of(version) >= REASSIGNMENTS_IN_TOPICS
    with ExitStack() as stack:
        with _step(1, f"Starting {'' if kraft else 'ZooKeeper and '}three brokers of Kafka {version}, Airflow beside"):
            # A first one makes Airflow's database, which takes some seconds.
            airflow = stack.enter_context(
                begin_airflow(home / "airflow", dags=dags.absolute(), environment={}, port=web)
            )
            cluster = LocalCluster.up(
                home,
                broker_ports=brokers,
                zookeeper_port=zookeeper,
                kafka=version,
                kraft=kraft,
                fresh=True,
                progress=_detail,
            )
        try:
            verified = _run_loop(home, topics.absolute(), cluster, airflow, started, moves=moves)
        finally:
            airflow.stop()  # first, so that no task waits for brokers that are gone
            cluster.down(now=True)  # the data is not needed: the next demo starts with an empty cluster
    raise typer.Exit(ExitStatus.SUCCESS if verified else ExitStatus.ERROR)


def require_checkout(topics: Path, dags: Path) -> None:
    """Raise ``UsageError`` when the specs or the DAG files are missing."""
    for folder, option in ((topics, "--topics"), (dags, "--dags")):
        if not folder.is_dir():
            raise UsageError(f"{folder}: no such folder; run the demo in a checkout, or name the folder with {option}")


def _run_loop(
    home: Path, topics: Path, cluster: LocalCluster, airflow: LocalAirflow, started: float, *, moves: bool
) -> bool:
    """Steps 2 to 8. Returns whether the run was verified and left nothing to do but the held change."""
    from topicops.flow import planning, reporting
    from topicops.flow.runs.run import open_run
    from topicops.plugged import moves as moves_of
    from topicops_local.airflow import wait_for_dags
    from topicops_local.demo_start import seed_cluster

    run = open_run(
        environment=ENVIRONMENT, topics=topics, group="cli", run_id=new_run_id(), home=home, moves=moves_of()
    )
    with _step(2, "Putting topics on it, so that there is something to change"):
        for line in seed_cluster(run, cluster.bootstrap_servers, sorted(cluster.broker_ports), moves=moves):
            _detail(line)
    with _step(3, "Comparing the specs with the live topics"):
        plan = planning.make_plan(run).plan
    print_result(reporting.render(plan, "text"))
    left = _left_held(plan)
    with _step(4, "Waiting for Airflow, which started beside the cluster"):
        airflow.wait_healthy()
        client = airflow.client()
        wait_for_dags(client, [PIPELINE, MOVES], each_time=airflow.require_alive)
    but = f" but that of {left.change.address}" if left else ""
    with _step(5, f"Running {PIPELINE} in Airflow, with this plan's digests{but} as approved"):
        pipeline_run = _follow_pipeline(airflow, client, [g.digest for g in plan.changes if g is not left])
    report = open_run(environment=ENVIRONMENT, topics=topics, group=PIPELINE, run_id=pipeline_run, home=home)
    succeeded = client.run_state(PIPELINE, pipeline_run) == "success"
    _show_report(report, client, pipeline_run, succeeded=succeeded)
    moved = _follow_moves(airflow, client, home)
    again = open_run(
        environment=ENVIRONMENT, topics=topics, group="cli", run_id=new_run_id(), home=home, moves=moves_of()
    )
    with _step(8, "Planning again"):
        rest = planning.make_plan(again).plan
    print_result(reporting.render(rest, "text"))
    asked = _question(airflow, client) if left and succeeded else None
    is_left_alone = [g.digest for g in rest.changes] == ([left.digest] if left else [])
    verified = succeeded and moved and is_left_alone and not rest.change_set.blocked
    words = "The cluster is as the specs say, and verified" if verified else "The demo did not end verified"
    waits = f"; {left.change.action} {left.change.address} waits for an answer" if left and asked else ""
    print_result(f"\n{words}{waits} ({time.monotonic() - started:.0f} s).")
    if sys.stdout.isatty():
        _show_places(airflow, client, cluster, pipeline_run=pipeline_run, asked=asked)
        _wait_for_interrupt(airflow)
    return verified


def _free_ports(count: int) -> Sequence[int]:
    from topicops_local.processes import free_port

    ports: list[int] = []
    for _ in range(count):
        ports.append(free_port(frozenset(ports)))
    return ports


def _variables(home: Path, brokers: Sequence[int], zookeeper: int | None) -> Mapping[str, str]:
    """Return the connections of the environment file, for this process and for Airflow, by the ports."""
    from topicops_local.server_files import CHROOT

    servers = ",".join(f"127.0.0.1:{port}" for port in brokers)
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": servers}}
    variables = {
        "TOPICOPS_HOME": str(home),
        "TOPICOPS_MODE": "apply",
        "TOPICOPS_STEP_MOVES_EVERY": STEP_MOVES_EVERY,
        "AIRFLOW_CONN_KAFKA_LOCAL": json.dumps(kafka),
    }
    if zookeeper:
        coordinator = {"conn_type": "zookeeper", "host": f"127.0.0.1:{zookeeper}", "extra": {"chroot": CHROOT}}
        variables["AIRFLOW_CONN_KAFKA_ZOOKEEPER_LOCAL"] = json.dumps(coordinator)
    return variables


def _left_held(plan: Plan) -> GatedChange | None:
    """Return the held change that the demo leaves to its user: the last one of those that an approval lets run."""
    from topicops.model.plans.changes import GateWord

    held = [gated for gated in plan.with_gate(GateWord.HELD) if gated.approvable]
    return held[-1] if held else None


def _follow_pipeline(airflow: LocalAirflow, client: LocalAirflowClient, approved: Sequence[str]) -> str:
    """Trigger the pipeline, print each task when it ends, and return the run's id."""
    run_id = client.trigger(PIPELINE, {"mode": "apply", "approved": approved})
    for task in client.follow(PIPELINE, run_id, timeout_s=4 * HANGS_S, each_time=airflow.require_alive):
        seconds = "" if task.duration is None else f" ({task.duration:.1f} s)"
        _detail(f"{task.task_id}: {task.state}{seconds}")
    return run_id


def _show_report(run: Run, client: LocalAirflowClient, run_id: str, *, succeeded: bool) -> None:
    from topicops.flow import reporting

    _heading(6, "What the run did, and what was verified")
    try:
        print_result(reporting.render_report(run, "text"))
    except ArtifactError as error:
        print_result(f"  the run left no report: {error}")
    if succeeded:
        return
    for task in client.tasks(PIPELINE, run_id).values():
        if task.state == "failed":
            print_result(f"  {task.task_id} failed; the end of its log:")
            print_result(_last_lines(client.log(PIPELINE, run_id, task.task_id, task.try_number)))


def _follow_moves(airflow: LocalAirflow, client: LocalAirflowClient, home: Path) -> bool:
    """Show how far the moves are, until the DAG that carries them on has ended. Returns whether it ended well."""
    from topicops.features.moves.record import read_moves
    from topicops.features.moves.telling.status import status_of

    with _step(7, f"Following the replicas that move; {MOVES} makes a step every {STEP_MOVES_EVERY}"):
        runs, shown = client.runs(MOVES), ""
        deadline = time.monotonic() + 4 * HANGS_S
        while runs and set(runs.values()) & UNFINISHED and time.monotonic() < deadline:
            airflow.require_alive()
            if (said := status_of(ENVIRONMENT, read_moves(home, ENVIRONMENT)).text) != shown:
                shown = said
                _detail(said)
            time.sleep(1)
            runs = client.runs(MOVES)
        for ended in status_of(ENVIRONMENT, read_moves(home, ENVIRONMENT)).ended:
            _detail(f"{ended.topic}: {ended.partitions} partitions {ended.status}")
    return set(runs.values()) <= {"success"}


def _question(airflow: LocalAirflow, client: LocalAirflowClient) -> str:
    """The run of the approval DAG that waits for an answer. Raises ``AirflowError`` when none asks in time."""
    from topicops.features.shared.airflow_client import AirflowError

    deadline = time.monotonic() + HANGS_S
    while not (runs := client.runs(APPROVAL)) and time.monotonic() < deadline:
        airflow.require_alive()
        time.sleep(1)
    if not runs:
        raise AirflowError(f"{APPROVAL} has not been started within {HANGS_S:.0f} s")
    run_id = list(runs)[-1]
    client.wait_for_question(APPROVAL, run_id, "approve", timeout_s=HANGS_S)
    return run_id


def _show_places(
    airflow: LocalAirflow, client: LocalAirflowClient, cluster: LocalCluster, *, pipeline_run: str, asked: str | None
) -> None:
    print_result(f"\nAirflow: {airflow.url}  login: {airflow.username}  password: {airflow.password}")
    if asked:
        print_result(f"  approve or reject: {client.run_page(APPROVAL, asked)}/tasks/approve/required_actions")
    for name, page in client.pages_in_the_bar("topicops").items():
        print_result(f"  {name}, in the left bar: {page}")
    print_result(f"  what the run did:  {client.run_page(PIPELINE, pipeline_run)}/{PLAN_TAB}")
    zookeeper = cluster.status().zookeeper_hosts or "none"
    print_result(f"Brokers: {cluster.bootstrap_servers}  ZooKeeper: {zookeeper}")
    print_result("Both stay up until Ctrl-C.")


def _wait_for_interrupt(airflow: LocalAirflow) -> None:
    """Wait until Ctrl-C; say once of each service of Airflow that it has ended."""
    said: set[str] = set()
    try:
        while True:
            for service, log in airflow.ended().items():
                if service not in said:
                    print_result(f"\nAirflow's {service} has ended; its log is {log}. Start the demo again.")
                    said.add(service)
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        print_result("\nStopping Airflow and the cluster: about 10 s")


def _last_lines(text: str, count: int = 20) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines()[-count:])


def _heading(number: int, text: str) -> None:
    print(f"\n[{number}/{STEPS}] {text}", flush=True)


def _detail(text: str) -> None:
    print(f"  {text}", flush=True)


@contextmanager
def _step(number: int, text: str) -> Iterator[None]:
    """Print the step, its running time every ten seconds, and how long it took."""
    _heading(number, text)
    started, ended = time.monotonic(), threading.Event()

    def show_time() -> None:
        while not ended.wait(10):
            _detail(f"... {time.monotonic() - started:.0f} s")

    watcher = threading.Thread(target=show_time, daemon=True)
    watcher.start()
    try:
        yield
    except TopicopsError:
        _detail(f"failed after {time.monotonic() - started:.1f} s")
        raise
    finally:
        ended.set()
        watcher.join()
    _detail(f"done in {time.monotonic() - started:.1f} s")


def _end(number: int, _: FrameType | None) -> NoReturn:
    for ending in ENDING:
        signal.signal(ending, signal.SIG_IGN)  # a second signal must not interrupt the stop
    raise SystemExit(status_after_signal(number))

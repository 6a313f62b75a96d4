"""``topicops local``: the embedded cluster. Results go to stdout, progress to stderr."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from topicops.cli.output import progress
from topicops.cli.shared_options import TextOrJsonOption
from topicops.model.errors import ExitStatus, UsageError
from topicops.model.json_types import json_text
from topicops.model.release import NEWEST

if TYPE_CHECKING:
    from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint
    from topicops_local.cluster import ClusterStatus, LocalCluster

app = typer.Typer(
    no_args_is_help=True, help="Three real Kafka brokers on this machine, with KRaft or with a ZooKeeper."
)


Home = Annotated[Path | None, typer.Option(help="The folder of the cluster's state, data and logs. Default: the home.")]


@app.command()
def up(
    home: Home = None,
    zookeeper_port: Annotated[int | None, typer.Option(help="Default: the last port, or a free one.")] = None,
    broker_ports: Annotated[str | None, typer.Option(help="Three ports: 9092,9093,9094.")] = None,
    kafka: Annotated[
        str | None,
        typer.Option(help=f"A release (2.8) or a version (2.8.2) of Kafka. Default: that of the data, else {NEWEST}."),
    ] = None,
    kraft: Annotated[
        bool,
        typer.Option(
            "--kraft",
            help="Without ZooKeeper, where that Kafka could have one; neither kind can use the data of the other.",
        ),
    ] = False,
    upgrade: Annotated[
        bool,
        typer.Option(
            "--upgrade",
            help="Let a newer Kafka start on the data of an older one; data are never given to an older Kafka.",
        ),
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data of an earlier cluster first.")] = False,
) -> None:
    """Start what is not running, and wait until every broker answers and knows every broker.

    The brokers are controllers too (KRaft); those of a Kafka before 4.0 get a ZooKeeper.
    """
    from topicops_local.cluster import LocalCluster

    if kafka is None and zookeeper_port is None and (fresh or _found(home) is None):
        kafka = str(NEWEST)
    cluster = LocalCluster.up(
        _folder(home),
        zookeeper_port=zookeeper_port,
        broker_ports=_ports(broker_ports),
        kafka=kafka,
        kraft=kraft or None,
        upgrade=upgrade,
        fresh=fresh,
        progress=progress,
    )
    found = cluster.status()
    typer.echo("\n".join([status_text(found), "", *lines_to_paste(found, home)]))


@app.command()
def down(
    home: Home = None,
    now: Annotated[bool, typer.Option("--now", help="Kill the processes instead of asking them to stop.")] = False,
) -> None:
    """Stop the processes that `up` started; data and logs are kept."""
    cluster = _found(home)
    stopped = cluster.down(now=now) if cluster else ()
    typer.echo(f"Stopped {', '.join(stopped)}." if stopped else "No local cluster is running.")


@app.command()
def status(home: Home = None, output: TextOrJsonOption = "text") -> None:
    """Show processes, ports, registered brokers and the controller. The exit status is 1 unless all of them run."""
    cluster = _found(home)
    found = cluster.status() if cluster else None
    if output == "json":
        typer.echo(status_json(found))
    else:
        typer.echo(status_text(found) if found else "No local cluster was started here; start one: topicops local up")
    if found is None or not found.running:
        raise typer.Exit(ExitStatus.ERROR)


def status_json(found: ClusterStatus | None) -> str:
    """Write ``format_version`` and ``running``; the rest is there once a cluster was started."""
    fields = {} if found is None else {"running": found.running, **msgspec.to_builtins(found)}
    return json_text({"format_version": 1, "running": False, **fields})


def status_text(found: ClusterStatus) -> str:
    """Return the status in lines for a person."""
    lines = [f"{'process':<10} {'pid':>8} {'port':>6}  state"]
    for process in found.processes:
        state = "running" if process.alive else "not running"
        lines.append(f"{process.role:<10} {process.pid or '-':>8} {process.port:>6}  {state}")
    registered = ", ".join(map(str, found.registered_brokers)) or "none"
    lines += [
        "",
        f"registered brokers: {registered}",
        f"controller:         {'none' if found.controller is None else f'broker {found.controller}'}",
        f"cluster id:         {found.cluster_id or 'not known yet'}",
        f"Kafka:              {_kafka_text(found)}",
        f"ZooKeeper:          {found.zookeeper_hosts or 'none: the brokers are a KRaft quorum'}",
        f"bootstrap servers:  {found.bootstrap_servers}",
        f"logs:               {found.logs}",
    ]
    return "\n".join(lines)


def _kafka_text(found: ClusterStatus) -> str:
    """Return ``2.8.2``; with several versions, who runs which: ``2.5.1 (zookeeper, broker-1), 2.8.2 (broker-2)``."""
    roles: dict[str, list[str]] = {}
    for role, version in found.versions.items():
        roles.setdefault(version, []).append(role)
    if len(roles) == 1:
        return next(iter(roles))
    return ", ".join(f"{version} ({', '.join(names)})" for version, names in roles.items())


def lines_to_paste(found: ClusterStatus, home: Path | None) -> list[str]:
    """Return the commands that use this cluster; ``home`` as it was given to ``up``."""
    lines = [] if home is None else [f"  export TOPICOPS_HOME={shlex.quote(str(home.absolute()))}"]
    lines = ["Use it, in an empty folder:", *lines, "  topicops init --local"]
    names = "connections kafka_zookeeper_local and" if found.zookeeper_hosts else "connection"
    lines += [f"or, where the environment file names the {names} kafka_local:"]
    if found.zookeeper_hosts:
        hosts, _, chroot = found.zookeeper_hosts.partition("/")
        zookeeper = {"conn_type": "zookeeper", "host": hosts, "extra": {"chroot": f"/{chroot}"}}
        lines.append(_export("KAFKA_ZOOKEEPER_LOCAL", zookeeper))
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": found.bootstrap_servers}}
    return [*lines, _export("KAFKA_LOCAL", kafka)]


def _export(connection: str, fields: Mapping[str, object]) -> str:
    return f"  export AIRFLOW_CONN_{connection}={shlex.quote(json.dumps(fields))}"


def local_addresses() -> tuple[ZooKeeperEndpoint | None, KafkaEndpoint]:
    """Give the addresses of the cluster that ``topicops local up`` started. Raises ``UsageError`` if none runs."""
    from topicops.flow.runs.run import home_folder
    from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint

    cluster = _found(None)
    status = cluster.status() if cluster else None
    if status is None or not status.running:
        raise UsageError(f"no local cluster runs in {home_folder()}; start one: topicops local up")
    zookeeper = ZooKeeperEndpoint(hosts=status.zookeeper_hosts) if status.zookeeper_hosts else None
    return zookeeper, KafkaEndpoint(bootstrap_servers=status.bootstrap_servers)


def _folder(home: Path | None) -> Path:
    from topicops.flow.runs.run import home_folder, scratch_folder

    return home or scratch_folder(home_folder())


def _found(home: Path | None) -> LocalCluster | None:
    from topicops_local.cluster import LocalCluster

    return LocalCluster.find(_folder(home), progress=progress)


def _ports(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        ports = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--broker-ports {text}: give numbers with commas, for example 9092,9093,9094") from None
    if not all(0 < port < 65536 for port in ports):
        raise UsageError(f"--broker-ports {text}: a port is a number from 1 to 65535")
    return ports

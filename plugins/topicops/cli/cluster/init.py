"""``topicops init``: the first files of a repository of topics, for a cluster that is there."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from topicops.cli.output import print_result, progress
from topicops.cli.shared_options import TopicsOption
from topicops.model.choices import ForgeKind
from topicops.model.errors import UsageError

if TYPE_CHECKING:
    from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint

LOCAL = "local"
DEFAULT_OWNER = "team-platform"


def init_command(
    zookeeper: Annotated[
        str | None, typer.Option("--zookeeper", help="host:port,host:port/chroot. Without ZooKeeper: leave it out.")
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option("--bootstrap-servers", help="host:port,host:port. Default: what is registered in ZooKeeper."),
    ] = None,
    zookeeper_connection: Annotated[
        str | None, typer.Option("--zookeeper-connection", help="Id of a connection, for TLS or a login.")
    ] = None,
    kafka_connection: Annotated[
        str | None, typer.Option("--kafka-connection", help="Id of a connection, for TLS or a login.")
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="The cluster of `topicops local up`.")] = False,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the environment. Default with --local: local.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", help=f"Who owns the live topics. Default: {DEFAULT_OWNER}.")
    ] = None,
    cluster_class: Annotated[
        Literal["production", "sandbox"] | None,
        typer.Option("--class", help="production or sandbox. Default: production; with --local: sandbox."),
    ] = None,
    forge: Annotated[
        ForgeKind, typer.Option("--forge", help="Where the pull requests of the repository are.")
    ] = "github",
    topics: TopicsOption = Path("topics"),
) -> None:
    """Look at a cluster, and write its environment file and what editors, git and pull requests need."""
    from topicops.flow.init import SETUP_PAGE, Start, start
    from topicops.plugged import LOCAL_CLUSTER
    from topicops.steps.authoring.owners_and_domains import checked_owner
    from topicops.steps.reporting.specs.init_text import init_text

    given = (zookeeper, bootstrap_servers, zookeeper_connection, kafka_connection)
    if local and any(given):
        raise UsageError("--local names the cluster already: leave out the addresses and connections")
    if local and not LOCAL_CLUSTER:
        raise UsageError("--local: this installation of topicops has no local cluster")
    asks = not local and not any(given)
    if asks and not sys.stdin.isatty():
        raise UsageError("name the cluster: --zookeeper or --bootstrap-servers, a connection's id, or --local")
    named = _endpoints(*given)
    name = name or (LOCAL if local else _asked_name())
    zookeeper_endpoint, kafka_endpoint = LOCAL_CLUSTER[0]() if local else _asked_addresses() if asks else named
    owner = owner or (typer.prompt("Owner of the live topics", default=DEFAULT_OWNER) if asks else DEFAULT_OWNER)
    wanted = Start(
        name=_checked_name(name),
        owner=checked_owner(owner),
        cluster_class=cluster_class or ("sandbox" if local else "production"),
        zookeeper=zookeeper_endpoint,
        kafka=kafka_endpoint,
        topics=_below_working_folder(topics),
        forge=forge,
    )
    done = start(wanted, progress=progress)
    print_result(
        init_text(
            done.environment,
            owner=wanted.owner,
            topics=wanted.topics,
            written=done.written,
            left_alone=done.left_alone,
            hints=done.hints,
            described=done.described,
            forge=forge,
            page=SETUP_PAGE,
        )
    )


def _asked_name() -> str:
    if not sys.stdin.isatty():
        raise UsageError("give the environment a name, as in: --name prod")
    return str(typer.prompt("Name of the environment", default="prod"))


def _asked_addresses() -> tuple[ZooKeeperEndpoint | None, KafkaEndpoint | None]:
    zookeeper = typer.prompt("ZooKeeper, host:port,host:port/chroot (empty: there is none)", default="")
    default = "" if zookeeper else None
    question = "Bootstrap servers" + (" (empty: as registered in ZooKeeper)" if zookeeper else "")
    return _endpoints(zookeeper or None, typer.prompt(question, default=default) or None, None, None)


def _endpoints(
    zookeeper: str | None, bootstrap_servers: str | None, zookeeper_connection: str | None, kafka_connection: str | None
) -> tuple[ZooKeeperEndpoint | None, KafkaEndpoint | None]:
    from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint

    if zookeeper and zookeeper_connection:
        raise UsageError("give --zookeeper or --zookeeper-connection, not both")
    if bootstrap_servers and kafka_connection:
        raise UsageError("give --bootstrap-servers or --kafka-connection, not both")
    return (
        ZooKeeperEndpoint(hosts=zookeeper, connection=zookeeper_connection)
        if zookeeper or zookeeper_connection
        else None,
        KafkaEndpoint(bootstrap_servers=bootstrap_servers, connection=kafka_connection)
        if bootstrap_servers or kafka_connection
        else None,
    )


def _checked_name(name: str) -> str:
    """An environment's file has this name. Raises ``UsageError``."""
    from topicops.steps.specs.rules.names import name_problem

    problem = "a dot" if "." in name else name_problem(name)
    if problem or name == "all":
        raise UsageError(f"--name {name!r} cannot be the name of an environment: use letters, digits, - and _")
    return name


def _below_working_folder(topics: Path) -> str:
    shown = os.path.relpath(topics).replace(os.sep, "/")
    if shown == "." or shown.startswith("../"):
        raise UsageError(f"--topics {topics}: name a folder below this one, where the repository begins")
    return shown

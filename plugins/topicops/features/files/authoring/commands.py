"""``topicops init``, ``new``, ``retire``, ``adopt`` and ``import``: files of people, who look at them next."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from topicops.cli.output import print_error, print_result, print_value, progress
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, run_of, unrecorded_run
from topicops.model.choices import ForgeKind
from topicops.model.errors import SpecError, SpecFileError, UsageError
from topicops.model.printable import printable

if TYPE_CHECKING:
    from topicops.features.shared.yaml_text import Content
    from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint

DEFAULT_OWNER = "team-platform"
FORMATS_SHOWN = (
    "terraform, strimzi, jikkou, topicctl, julie, kafka-gitops, jsonl, ansible, helmsman, create-topics or describe"
)


def init_command(
    bootstrap_servers: Annotated[
        str | None, typer.Option("--bootstrap-servers", help="host:port,host:port of a cluster without a login.")
    ] = None,
    kafka_connection: Annotated[
        str | None, typer.Option("--kafka-connection", help="Id of a connection, for TLS or a login.")
    ] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            "--zookeeper",
            help="host:port,host:port/chroot, where there is one. The brokers are found in it, if they have a "
            "listener without TLS and login.",
        ),
    ] = None,
    zookeeper_connection: Annotated[
        str | None, typer.Option("--zookeeper-connection", help="Id of a connection, for TLS or a login.")
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
        typer.Option(
            "--class",
            help="production or sandbox. Default: production; with --local: sandbox, which is not bound to the "
            "cluster's id.",
        ),
    ] = None,
    kind: Annotated[
        Literal["own", "managed"] | None,
        typer.Option(
            "--kind",
            help="managed: a service runs the brokers, and places the replicas. Default: as the brokers' names say.",
        ),
    ] = None,
    forge: Annotated[
        ForgeKind, typer.Option("--forge", help="github or gitlab: whose workflow and CODEOWNERS are written.")
    ] = "github",
    airflow: Annotated[
        Path | None,
        typer.Option(
            "--airflow",
            metavar="FOLDER",
            help="Write only the DAG file for Airflow, into this folder. It reads `topics` beside it. -: print it.",
        ),
    ] = None,
    topics: TopicsOption = Path("topics"),
) -> None:
    """Look at a cluster, and write its environment file and what editors, git and pull requests need."""
    from topicops.features.files.authoring.first_environment import Start
    from topicops.features.files.authoring.init import start
    from topicops.features.files.authoring.specs import checked_owner
    from topicops.features.shared.writer import shown
    from topicops.steps.specs.rules.names import name_problem

    if airflow:
        print_result(_dag_file_in(airflow))
        return
    given = (zookeeper, bootstrap_servers, zookeeper_connection, kafka_connection)
    if local and any(given):
        raise UsageError("--local names the cluster already: leave out the addresses and connections")
    asks = not local and not any(given)
    if asks and not sys.stdin.isatty():
        raise UsageError("name the cluster: --bootstrap-servers or --zookeeper, a connection's id, or --local")
    addresses = _endpoints(*given)
    if not name and not local:
        if not sys.stdin.isatty():
            raise UsageError("give the environment a name, as in: --name prod")
        name = str(typer.prompt("Name of the environment", default="prod"))
    if local:
        from topicops.cli.local import local_addresses

        addresses = local_addresses()
    elif asks:
        addresses = _asked_addresses()
        if not (kind or addresses[0]) and typer.confirm("Does a service run the brokers, and place the replicas?"):
            kind = "managed"
    owner = owner or (typer.prompt("Owner of the live topics", default=DEFAULT_OWNER) if asks else DEFAULT_OWNER)
    name, below = name or "local", shown(topics)
    if "." in name or name_problem(name) or name == "all":
        raise UsageError(f"--name {name!r} cannot be the name of an environment: use letters, digits, - and _")
    if below == "." or below.startswith("../"):
        raise UsageError(f"--topics {topics}: name a folder below this one, where the repository begins")
    wanted = Start(
        name=name,
        owner=checked_owner(owner),
        cluster_class=cluster_class or ("sandbox" if local else "production"),
        zookeeper=addresses[0],
        kafka=addresses[1],
        topics=below,
        kind=kind,
        forge=forge,
    )
    print_result(start(wanted, progress=progress))


def _dag_file_in(folder: Path) -> str:
    """Write the DAG file unless it is there, and return a sentence about it; of ``-``, its text."""
    from topicops.features.files.authoring.first_environment import DAG_FILE, dag_file
    from topicops.features.shared.writer import write_new

    if folder == Path("-"):
        return dag_file().rstrip("\n")
    path = folder / DAG_FILE
    if path.is_file() and path.read_bytes() == dag_file().encode():
        return f"{path}: is there already, as it would be written"
    if path.exists():
        raise SpecFileError(f"{path}: it has other lines; compare with `topicops init --airflow -`, or move it away")
    write_new(folder, {DAG_FILE: dag_file()})
    return f"{path}: written"


def _asked_addresses() -> tuple[ZooKeeperEndpoint | None, KafkaEndpoint | None]:
    servers = typer.prompt("Bootstrap servers, host:port,host:port (empty: as registered in ZooKeeper)", default="")
    question = "ZooKeeper, host:port,host:port/chroot" + (" (empty: KRaft, there is none)" if servers else "")
    return _endpoints(typer.prompt(question, default="" if servers else None) or None, servers or None, None, None)


def _endpoints(
    zookeeper: str | None, bootstrap_servers: str | None, zookeeper_connection: str | None, kafka_connection: str | None
) -> tuple[ZooKeeperEndpoint | None, KafkaEndpoint | None]:
    from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint

    if zookeeper and zookeeper_connection:
        raise UsageError("give --zookeeper or --zookeeper-connection, not both")
    if bootstrap_servers and kafka_connection:
        raise UsageError("give --bootstrap-servers or --kafka-connection, not both")
    zookeeper_given, kafka_given = zookeeper or zookeeper_connection, bootstrap_servers or kafka_connection
    kafka = KafkaEndpoint(bootstrap_servers=bootstrap_servers, connection=kafka_connection) if kafka_given else None
    return ZooKeeperEndpoint(hosts=zookeeper, connection=zookeeper_connection) if zookeeper_given else None, kafka


def new_command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    owner: Annotated[str, typer.Option("--owner", help="The team or person responsible for it.")],
    topics: TopicsOption = Path("topics"),
    domain: Annotated[
        str | None, typer.Option("--domain", help="The folder. Default: the first dotted part of the name, or other.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", help="What its records are.")] = None,
    label: Annotated[list[str] | None, typer.Option("--label", help="KEY=VALUE; may be repeated.")] = None,
    only_in: Annotated[
        list[str] | None, typer.Option("--only-in", help="An environment; may be repeated. Default: all.")
    ] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Name of a file in topics/profiles/.")] = None,
    partitions: Annotated[int | None, typer.Option("--partitions", help="Default: as in the layers below.")] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", help="Default: as in the layers below.")
    ] = None,
    keyed: Annotated[
        bool | None,
        typer.Option(
            "--keyed/--not-keyed",
            help="Whether records have keys, so that new partitions would move keys. Default: yes.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", help="NAME=VALUE, as in a file: retention.ms=7d, segment.ms=null; may be repeated."),
    ] = None,
) -> None:
    """Check a new spec against all rules, then write it. No file is overwritten. Opens no connection."""
    from topicops.features.files.authoring.specs import checked_domain, checked_owner, given, typed, write_new_spec
    from topicops.features.shared.yaml_text import document_text
    from topicops.plugged import NEW_FILE

    metadata: dict[str, Content] = {
        "name": topic,
        "owner": checked_owner(owner),
        "description": description,
        "labels": _pairs(label, option="--label"),
        "environments": tuple(only_in or ()),
    }
    spec: dict[str, Content] = {
        "profile": profile,
        "partitions": partitions,
        "replicationFactor": replication_factor,
        "keyed": keyed,
        "configs": {name: typed(text) for name, text in _pairs(config, option="--config").items()},
    }
    domain, text = checked_domain(domain), document_text("Topic", given(metadata), {"spec": given(spec)})
    try:
        file = write_new_spec(topics, topic, text, domain=domain, passes=NEW_FILE)
    except SpecError:
        print_error("No file was written; a place below in a file that is not there is of the text it would have had:")
        raise
    print_result(f"Wrote {printable(file)}")


def _pairs(given: Sequence[str] | None, *, option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not equals or not name or name in found:
            raise UsageError(f"{option} {pair!r}: write it as NAME=VALUE, each name once")
        found[name] = value
    return found


def retire_command(
    topic: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Names of topics, or globs such as 'tmp.*'.")],
    reason: Annotated[str, typer.Option("--reason", help="Why they are deleted; a reviewer reads it.")],
    topics: TopicsOption = Path("topics"),
    not_before: Annotated[
        str | None, typer.Option("--not-before", help="The earliest time, with its zone: 2030-01-31T12:00:00Z.")
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--environment",
            "-e",
            help="Read the ids of the topics there, and write them into topicIds; may be repeated. Opens a connection.",
        ),
    ] = None,
) -> None:
    """Turn specs into tombstones, all or none: the metadata stays, the lifecycle takes the place of the spec."""
    from topicops.features.files.authoring.specs import Lifecycles, given, retire, topic_ids
    from topicops.model.specs.spellings import in_utc

    if not reason.strip():
        raise UsageError("--reason is empty: give one, as in: --reason 'Replaced by payments.orders-v2.'")
    try:
        earliest = None if not_before is None else in_utc(datetime.fromisoformat(not_before))
    except ValueError as error:
        message = f"--not-before {not_before!r}: write a time with its zone, like 2030-01-31T12:00:00Z"
        raise UsageError(message) from error

    def lifecycle(names: Sequence[str]) -> Lifecycles:
        not_before = None if earliest is None else earliest.isoformat().replace("+00:00", "Z")
        found = {where: topic_ids(run_of(where, topics), names) for where in sorted(environment or ())}
        ids = {name: {where: by_name[name] for where, by_name in found.items()} for name in names}
        block: dict[str, Content] = {"state": "absent", "reason": reason}
        return {name: {**block, **given({"notBefore": not_before, "topicIds": ids[name]})} for name in names}

    for file in retire(topics, topic, lifecycle):
        print_result(f"{printable(file)} is a tombstone; the next plan deletes {printable(Path(file).stem)}")


def adopt_command(
    topic: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC...", help="Names of topics, or globs; '*': all that drifted.")
    ] = None,
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    output: TextOrJsonOption = "text",
) -> None:
    """Write live values into the files that ask for others, so that the next plan changes nothing."""
    from topicops.features.files.authoring.adopting import adopt, adopted_text

    if not topic:
        raise UsageError("name the topics: topicops adopt payments.orders, or topicops adopt '*' for all that drifted")
    print_value(adopt(unrecorded_run(environment, topics), topic), output, adopted_text)


def import_command(
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    owner: Annotated[
        str | None,
        typer.Option("--owner", help="Who is responsible for the imported topics that no pattern of the owners fits."),
    ] = None,
    owners: Annotated[
        Path | None,
        typer.Option(
            "--owners",
            help="A file of owners whose patterns say whose each topic is. Default: owners.yaml of the topics. "
            "A topic that no pattern fits has no file, unless there is --owner.",
        ),
    ] = None,
    only: Annotated[str | None, typer.Option("--only", help="Import only topics whose name matches this glob.")] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain", help="The folder for all of them. Default: the first dotted part of each name, or other."
        ),
    ] = None,
    from_format: Annotated[
        str | None,
        typer.Option("--from", help=f"Take over the files of another tool: {FORMATS_SHOWN}. Opens no connection."),
    ] = None,
    path: Annotated[Path | None, typer.Argument(metavar="PATH", help="With --from: a file or a folder.")] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", help="With --from: only topics of this cluster.")] = None,
    owner_from: Annotated[
        str | None,
        typer.Option("--owner-from", help="With --from: where the owner stands: label:KEY, folder or project."),
    ] = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Write a spec for each live topic that has none, so that the next plan changes nothing."""
    from topicops.features.files.authoring.importing import import_lines, import_topics, topic_owners
    from topicops.features.files.authoring.specs import checked_domain

    found = topic_owners(topics, owners, otherwise=owner, needs_one=from_format is None)
    run, domain = unrecorded_run(environment, topics), checked_domain(domain)
    if from_format is None:
        if path or cluster or owner_from:
            raise UsageError(
                "PATH, --cluster and --owner-from need --from, as in: topicops import --from strimzi deploy/"
            )
        result = import_topics(run, found, domain=domain, only=only)
    else:
        from topicops.features.files.authoring.takeover.taking_over import Source, take_over

        source = Source(format_name=from_format, path=path, cluster=cluster, owner_from=owner_from)
        result = take_over(run, found, source, domain=domain, only=only)
    print_value(result, output, lambda result: "\n".join(import_lines(result)))
    if from_format is not None and not result.imported:
        raise typer.Exit(1)

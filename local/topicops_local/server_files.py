"""Command lines and property files of the local cluster's servers, as text."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from topicops.features.shared.java import class_archive_path, mark_used

CHROOT = "/kafka"
SESSION_TIMEOUT_MS = 6000
"""Session timeout, after which ZooKeeper or the KRaft quorum removes a dead broker."""

_JVM_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xss512k",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
)

_CONTROLLER = "CONTROLLER"
_PLAINTEXT = "PLAINTEXT"

# For a small machine: few threads, small buffers (the cleaner's default needs 128 MB of heap), one replica of Kafka's
# own topics, no topics created by accident, and deleted files removed soon.
_BROKER_PROPERTIES = {
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.segment.delete.delay.ms": "1000",
    # All brokers stop together, so waiting long for another broker to take the leaders is useless.
    "controlled.shutdown.max.retries": "1",
    "controlled.shutdown.retry.backoff.ms": "300",
}

LOG4J = """\
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %m (%c{1})%n
# One line for each setting at each start, and one for each partition at each change:
log4j.logger.kafka.server.KafkaConfig=WARN
log4j.logger.org.apache.kafka.common.config.AbstractConfig=WARN
log4j.logger.org.apache.zookeeper.ZooKeeper=WARN
log4j.logger.org.apache.zookeeper.server.ZooKeeperServer=WARN
log4j.logger.state.change.logger=WARN
"""

LOG4J2 = """\
rootLogger.level=INFO
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{ISO8601} %p %m (%c{1})%n
logger.config.name=org.apache.kafka.common.config.AbstractConfig
logger.config.level=WARN
logger.state.name=state.change.logger
logger.state.level=WARN
"""

_LOG_FLAGS = {"log4j.properties": "log4j.configuration", "log4j2.properties": "log4j2.configurationFile"}


def zookeeper_properties(data: Path, port: int, *, tick_ms: int = 2000) -> dict[str, str]:
    """Sessions may last from 2 to 20 ticks."""
    return {
        "dataDir": str(data),
        "clientPort": str(port),
        "clientPortAddress": "127.0.0.1",
        "tickTime": str(tick_ms),
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
    }


def broker_properties(
    broker: int, *, rack: str, port: int, zookeeper_port: int, data: Path, extra: Mapping[str, str]
) -> dict[str, str]:
    """Return the broker's settings; ``extra`` replaces ours."""
    listener = f"{_PLAINTEXT}://127.0.0.1:{port}"
    return {
        "broker.id": str(broker),
        "broker.rack": rack,
        "listeners": listener,
        "advertised.listeners": listener,
        "log.dirs": str(data),
        "zookeeper.connect": f"127.0.0.1:{zookeeper_port}{CHROOT}",
        "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        **_BROKER_PROPERTIES,
        **extra,
    }


def kraft_properties(
    broker: int, *, rack: str, port: int, controller_ports: Mapping[int, int], data: Path, extra: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of a server that is broker and controller; ``controller_ports`` are those of all, by id."""
    listener = f"{_PLAINTEXT}://127.0.0.1:{port}"
    return {
        "process.roles": "broker,controller",
        "node.id": str(broker),
        "broker.rack": rack,
        "controller.quorum.voters": ",".join(f"{i}@127.0.0.1:{p}" for i, p in sorted(controller_ports.items())),
        "controller.listener.names": _CONTROLLER,
        "inter.broker.listener.name": _PLAINTEXT,
        "listener.security.protocol.map": f"{_PLAINTEXT}:{_PLAINTEXT},{_CONTROLLER}:{_PLAINTEXT}",
        "listeners": f"{listener},{_CONTROLLER}://127.0.0.1:{controller_ports[broker]}",
        "advertised.listeners": listener,
        "log.dirs": str(data),
        "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        **_BROKER_PROPERTIES,
        **extra,
    }


def properties_text(properties: Mapping[str, str]) -> str:
    """Return the form of ``java.util.Properties``, where a backslash is an escape. Empty settings are left out."""
    return "".join(f"{key}={value}\n" for key, value in properties.items() if value).replace("\\", "\\\\")


def log_settings(class_path: Sequence[Path]) -> tuple[str, str]:
    """Name and text of the file that says what servers log: for Log4j 2 where it is on the class path, else for 1."""
    version_2 = any(jar.name.startswith("log4j-core-") for jar in class_path)
    return ("log4j2.properties", LOG4J2) if version_2 else ("log4j.properties", LOG4J)


def class_archive(java: Path, class_path: Sequence[Path]) -> Path:
    """Return where the class-data archive of brokers is, if there is one."""
    return class_archive_path("kafka", java, class_path, _JVM_FLAGS)


def zookeeper_command(
    java: Path, class_path: Sequence[Path], properties: Path, *, heap_mb: int = 128, log4j: Path | None = None
) -> list[str]:
    """Return the command of one ZooKeeper server; ``log4j`` is named as ``log_settings`` says.

    It does not force its log to the disk, because a crash of the machine may lose the data.
    """
    return [
        *_java(java, class_path, heap_mb=heap_mb, log4j=log4j),
        "-Dzookeeper.forceSync=no",
        "-Dzookeeper.jmx.log4j.disable=true",  # ZooKeeper 3.4 asks Log4j for classes that reload4j lacks
        "org.apache.zookeeper.server.ZooKeeperServerMain",
        str(properties),
    ]


def broker_command(java: Path, class_path: Sequence[Path], properties: Path, *, heap_mb: int, log4j: Path) -> list[str]:
    return [*_java(java, class_path, heap_mb=heap_mb, log4j=log4j), "kafka.Kafka", str(properties)]


def format_command(java: Path, class_path: Sequence[Path], properties: Path, *, cluster_id: str) -> list[str]:
    """Return the command that prepares a KRaft server's empty data folder; a prepared folder stays as it is."""
    tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted", f"--cluster-id={cluster_id}"]
    return [*_java(java, class_path, heap_mb=128, log4j=None), *tool, "-c", str(properties)]


def _java(java: Path, class_path: Sequence[Path], *, heap_mb: int, log4j: Path | None) -> list[str]:
    archive = class_archive(java, class_path)
    classes = [f"-XX:SharedArchiveFile={archive}"] if mark_used(archive) else []
    logging = [f"-D{_LOG_FLAGS[log4j.name]}=file:{log4j}"] if log4j else []
    # Java itself does not read TMPDIR; it unpacks its libraries there, which a folder mounted noexec forbids.
    place = f"-Djava.io.tmpdir={tempfile.gettempdir()}"
    return [str(java), f"-Xmx{heap_mb}m", *_JVM_FLAGS, place, *classes, *logging, "-cp", ":".join(map(str, class_path))]

"""Spark's Java process: one for each Python process, started directly (decision 0012).

Spark's own start first runs another JVM that only prints the command line. The command line of a driver on this machine
is known, so this module starts it: C1 compiler, serial collector, and the class-data archive of
``edges.spark.class_archive`` if there is one that fits. Without it the JVM loads its classes from the jars, only
slower. If the direct start fails, Spark's own start is used.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from pyspark import SparkConf
from pyspark import __version__ as pyspark_version
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from topicops.edges.cache_folder import default_cache
from topicops.edges.java import find_java, pyspark_jars
from topicops.edges.processes import last_lines
from topicops.model.errors import LocalClusterError, TopicopsError

LOOPBACK = "127.0.0.1"
_START_TIMEOUT_S = 120.0
_POLL_S = 0.02
_LOG4J2 = Path(__file__).with_name("log4j2.properties")

# Source: org.apache.spark.launcher.JavaModuleOptions (4.3), without the incubating vector module, which is for MLlib.
_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
_MODULE_FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
)
_SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_HEAP = "-Xmx1g"

_log = logging.getLogger(__name__)
logging.getLogger("py4j").setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkDriver:
    """A running Java process, and the folder of all files that it writes."""

    gateway: JavaGateway
    folder: Path
    process: subprocess.Popen[bytes] | None
    """None after Spark's own start: pyspark has the handle."""

    @property
    def uses_archive(self) -> bool:
        """Whether the JVM loads classes from the archive; it silently ignores one that does not fit."""
        log = _archive_log(self.folder)
        return log.is_file() and "Mapped dynamic region" in log.read_text(encoding="utf-8", errors="replace")

    def end(self, *, timeout_s: float) -> None:
        """End the JVM, and wait until it has written its archive."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait(timeout_s)


_started: list[SparkDriver] = []
"""The driver of this process, once it runs; pyspark allows one for each process."""


def local_driver() -> SparkDriver:
    """The driver on this machine, started at the first call; it ends with this process.

    Raises:
        TopicopsError: There is no suitable Java, or the driver could not be started.
    """
    if not _started:
        _started.append(_start(driver_java(), _own_folder()))
    return _started[0]


def uses_archive() -> bool:
    """Whether this process has a local driver that loads classes from the archive."""
    return any(driver.uses_archive for driver in _started)


def training_driver(archive: Path) -> SparkDriver:
    """The driver of this process, which will write ``archive`` when it ends."""
    _started.append(start_directly(driver_java(), _own_folder(), [f"-XX:ArchiveClassesAtExit={archive}"]))
    return _started[0]


def _start(java: Path, folder: Path) -> SparkDriver:
    """Try three ways, the fastest first. An archive that is so damaged that the JVM ends is removed."""
    archived = archive_flags(java, folder)
    for flags in (archived, ()) if archived else ((),):
        try:
            driver = start_directly(java, folder, flags)
        except (TopicopsError, OSError, struct.error) as error:
            _log.info("Spark's driver did not start directly%s: %s", " from its archive" if flags else "", error)
            continue
        if archived and not flags:
            archive_path(java).unlink(missing_ok=True)
        return driver
    return _start_by_spark(_small_driver_conf(), folder, {"JAVA_HOME": _home_of(java), "SPARK_LOCAL_IP": LOOPBACK})


def cluster_driver(settings: tuple[tuple[str, str], ...]) -> SparkDriver:
    """A driver for a cluster manager, started by Spark itself, which reads ``spark-defaults.conf`` and the like."""
    conf = SparkConf(loadDefaults=False).setAll(list(settings))
    return _start_by_spark(conf, _own_folder(), {"JAVA_HOME": _home_of(driver_java())})


def log4j2_flag() -> str:
    return f"-Dlog4j2.configurationFile={_LOG4J2.as_uri()}"


def archive_path(java: Path) -> Path:
    """The path of the class-data archive for this Java and these jars, whether it exists or not.

    The JVM accepts an archive only with the Java and the jars that it was created with, so its name depends on them.
    """
    jars = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in _class_path()]
    binary = java.resolve()
    key = repr([str(binary), binary.stat().st_mtime_ns, binary.stat().st_size, jars, _MODULE_FLAGS, _SMALL_JVM])
    return default_cache() / f"spark-{pyspark_version}-{sha256(key.encode()).hexdigest()[:16]}.jsa"


def archive_flags(java: Path, folder: Path) -> tuple[str, ...]:
    """The JVM flags that use the archive; none while it does not exist."""
    archive = archive_path(java)
    if not archive.is_file():
        return ()
    return f"-XX:SharedArchiveFile={archive}", f"-Xlog:cds:file={_archive_log(folder)}"


def start_directly(java: Path, folder: Path, flags: Sequence[str]) -> SparkDriver:
    """Start the driver's JVM without Spark's launcher and connect to it.

    Raises:
        TopicopsError: The JVM ended, or wrote no address in time.
    """
    address = folder / "gateway"
    command = [str(java), *_MODULE_FLAGS, *_SMALL_JVM, _HEAP, *flags, log4j2_flag(), *_places(folder)]
    command.append("org.apache.spark.api.python.PythonGatewayServer")
    environment = os.environ | {
        "CLASSPATH": os.pathsep.join(map(str, _class_path())),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address),
    }
    with _log_file(folder).open("wb") as log:
        # The JVM ends when its stdin is closed, at the latest with this process. Ctrl-C reaches this process alone.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    try:
        return SparkDriver(gateway=_connect(process, address), folder=folder, process=process)
    except BaseException:
        process.kill()
        process.wait()
        raise


def _connect(process: subprocess.Popen[bytes], address: Path) -> JavaGateway:
    """Read port and secret from the file that Spark writes: two big-endian ints (port, length), then the secret."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not address.is_file():
        if process.poll() is not None:
            raise TopicopsError(f"Spark's Java process ended with {process.returncode}")
        if time.monotonic() > deadline:
            raise TopicopsError(f"Spark's Java process wrote no address within {_START_TIMEOUT_S:.0f} s")
        time.sleep(_POLL_S)
    port, length = struct.unpack_from(">ii", content := address.read_bytes())
    secret = content[8 : 8 + length].decode()
    address.unlink()
    with _environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
        return launch_gateway()  # type: ignore[no-untyped-call]


def _places(folder: Path) -> tuple[str, ...]:
    return f"-Djava.io.tmpdir={folder}", f"-XX:ErrorFile={folder}/crash.log"


def _start_by_spark(conf: SparkConf, folder: Path, environment: Mapping[str, str]) -> SparkDriver:
    log_file = _log_file(folder)
    with log_file.open("ab") as log, _environment(environment):
        try:
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
        except (PySparkRuntimeError, OSError) as error:
            raise TopicopsError(f"Spark could not be started; the end of its log:\n{last_lines(log_file)}") from error
    return SparkDriver(gateway=gateway, folder=folder, process=None)


def _small_driver_conf() -> SparkConf:
    conf = SparkConf(loadDefaults=False)
    return conf.set("spark.driver.extraJavaOptions", " ".join((*_SMALL_JVM, log4j2_flag())))


def driver_java() -> Path:
    try:
        return find_java()
    except LocalClusterError as error:
        raise TopicopsError(f"Spark: {error}") from error


def _home_of(java: Path) -> str:
    return str(java.resolve().parent.parent)


@functools.cache
def _class_path() -> tuple[Path, ...]:
    """Only jars, in a fixed order: the archive needs both."""
    return tuple(sorted(pyspark_jars().glob("*.jar")))


def _own_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="topicops-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _log_file(folder: Path) -> Path:
    return folder / "driver.log"


def _archive_log(folder: Path) -> Path:
    return folder / "archive.log"


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a moment: pyspark reads some settings only there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

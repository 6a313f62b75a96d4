"""Spark's Java process: one for each Python process.

Spark starts it. A driver on this machine gets a small JVM (C1 compiler, serial collector) and the class-data archive of
``class_archive`` if there is one that fits (decision 0012). Without it the JVM loads its classes from the
jars, only slower.
"""

from __future__ import annotations

import atexit
import logging
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol, TypeVar

import psutil
from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from pyspark import __version__ as pyspark_version
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from topicops.edges.durable_files import write_atomically
from topicops.features.shared.java import class_archive_path, find_java, last_lines, mark_used, pyspark_jars
from topicops.features.spark.settings import DEFAULT_MEMORY
from topicops.model.errors import LocalClusterError, TopicopsError

LOOPBACK = "127.0.0.1"
DRIVER_LOG = "driver.log"
_ANSWER = "gateway"
"""File in which the JVM tells its port and its secret."""
_POLL_S = 0.1
_LOG4J2 = Path(__file__).with_name("log4j2.properties")
_TRAINING = Path(__file__).with_name("class_archive.py")
_SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_FIRST_HEAP = "-Xms64m"
"""Else a JVM begins with a 64th of the machine's memory, and fills it before it collects anything."""
_UNUSED_JAR = "spark-mllib_*.jar"
"""Jar that Spark does not get: each session would register its functions, which costs a CPU second and 30 MiB."""
_OF_THE_HOST = ("SPARK_", "PYSPARK_")
"""How the variables begin that PySpark itself reads, some thirty of them, at any call; and MASTER."""
_KEPT_VARIABLES = ("SPARK_CONNECT_AUTHENTICATE_TOKEN", "SPARK_USER", "PYSPARK_PYTHON")
"""The token of Spark Connect, the name of the user, and what runs functions of Python, of which we have none."""
_OF_JAVA = ("HADOOP_", "YARN_", "HIVE_", "MESOS_", "KRB5", "JAVA_", "JDK_JAVA_", "_JAVA_", "CLASSPATH")
"""How more variables begin by which a JVM, Hadoop or a script of Spark would take another setup."""
_ROOM_BYTES = 64 << 20
"""Free space without which no driver is started: it writes its log, and spills there."""
_TELL_S = 15.0
"""Between two lines of progress while somebody waits for a start."""

_TMPDIR_HELPS = "free some space, or name another folder in TMPDIR"

T = TypeVar("T")

_log = logging.getLogger(__name__)


class JavaProcess(Protocol):
    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkDriver:
    """A running Java process, and the folder of all files that it writes."""

    gateway: JavaGateway
    folder: Path
    defaults: Path
    """Place of the ``spark-defaults.conf`` that it reads, if there is one."""

    @property
    def log(self) -> Path:
        return self.folder / DRIVER_LOG

    def end(self, *, timeout_s: float) -> None:
        """End the JVM, and wait until it has written its archive."""
        self.gateway.proc.stdin.close()
        self.gateway.proc.wait(timeout_s)


_started: list[SparkDriver] = []
"""The driver of this process, once it runs; pyspark allows one for each process."""
_taken: list[Mapping[str, str]] = []
"""Variables of the host that ``without_host_settings`` has taken away."""
_kept: set[Path] = set()
"""Logs that an error has named, and that stay when this process ends."""
_CAUSE = re.compile(r'^(?:Exception in thread "main" |Caused by: |Error: )(?:[a-z]\w*\.)*(.+)$', re.MULTILINE)
"""Pattern of what Spark's script or Java says last, without the package of the error."""


def local_driver(*, memory: str | None = None, kept: Callable[[], SparkDriver | None] = lambda: None) -> SparkDriver:
    """Return this machine's driver, found or started at the first call. Its heap is 1 GB by default.

    Args:
        kept: Gives the one that another process keeps; one that is started here ends with this process.

    Raises ``TopicopsError`` where there is no suitable Java, or the driver could not be started.
    """
    if not _started:
        _started.append(kept() or _start_archived(driver_java(), _own_folder(), memory or DEFAULT_MEMORY))
    return _started[0]


def has_ended(*, wait_s: float = 0.0) -> bool:
    """Return whether Spark's Java process has ended, or ends within ``wait_s``: a new one needs a new Python."""
    for driver in _started:
        with suppress(subprocess.TimeoutExpired):
            driver.gateway.proc.wait(wait_s)
            return True
    return False


def training_driver(archive: Path) -> SparkDriver:
    """Return the driver of this process, which will write ``archive`` when it ends."""
    options = (*local_options(folder := _own_folder()), f"-XX:ArchiveClassesAtExit={archive}")
    _started.append(_started_here(_local_start(driver_java(), folder, DEFAULT_MEMORY, options)))
    return _started[0]


def cluster_driver(settings: Mapping[str, str]) -> SparkDriver:
    """Return a driver for a cluster manager, started at the first call; it reads ``spark-defaults.conf`` and the like.

    The settings go by a file that only this user can read, because every user sees a process's arguments.
    """
    if not _started:
        folder = _own_folder()
        file = folder / "settings.conf"
        # As a Java property file.
        pairs = ([text.replace("\\", "\\\\").replace("\n", "\\n") for text in pair] for pair in settings.items())
        lines = "".join(f"{name}={value}\n" for name, value in pairs)
        write_atomically(file, lines.encode(), mode=0o600, is_durable=False)
        arguments = ["--load-spark-defaults", "--properties-file", str(file)]
        of_the_site = {name: text for taken in _taken for name, text in taken.items()}
        home = Path(of_the_site.get("SPARK_HOME") or os.environ.get("SPARK_HOME") or pyspark_jars().parent)
        for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE", "MASTER"):
            of_the_site.pop(name, None)  # TOPICOPS_SPARK says where Spark runs
        start = _start_of(home, arguments, folder, {**of_the_site, **_java_first(driver_java())})
        _started.append(_started_here(start))
    return _started[0]


def defaults_file() -> Path | None:
    """Return the ``spark-defaults.conf`` that this process's driver read; None means that there was none."""
    return next((driver.defaults for driver in _started if driver.defaults.is_file()), None)


def log_size() -> int:
    """Return how many bytes the log of this process's driver has."""
    return sum(driver.log.stat().st_size for driver in _started if driver.log.is_file())


def kept_log() -> Path | None:
    """Return the log of this process's driver, which then stays when it ends; None means that it says nothing."""
    for driver in _started:
        if driver.log.is_file() and driver.log.stat().st_size:
            _kept.add(driver.log)
            return driver.log
    return None


def awaited(start: Future[T], limit_s: float, progress: Callable[[str], None]) -> T:
    """Wait for the end of a start. When it takes ``limit_s``, kill the Java process, and raise ``TopicopsError``."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < limit_s:
        try:
            return start.result(min(_TELL_S, limit_s - waited))
        except TimeoutError:
            if start.done():
                return start.result()
            progress(f"Waiting for Spark to start: {time.monotonic() - began:.0f} s of at most {limit_s:.0f} s")
    log = kept_log()
    _kill_drivers()
    where = f"; the driver's log is {log}" if log else ""
    raise TopicopsError(f"Spark did not start within {limit_s:.0f} s{where}")


@contextmanager
def without_host_settings() -> Iterator[None]:
    """Take the host's Spark variables out of this process's environment for a block, and give them back at its end.

    PySpark reads them at any call: SPARK_REMOTE alone would make every frame one of Spark Connect. A driver for a
    cluster gets them back, because there the setup of the site counts.
    """
    taken = {name: os.environ.pop(name) for name in _variables_of_spark()}
    _taken.append(taken)
    try:
        yield
    finally:
        _taken.remove(taken)
        for name in _variables_of_spark():
            del os.environ[name]  # PySpark's own, of the session that has ended
        os.environ.update(taken)


def _variables_of_spark() -> list[str]:
    of_spark = (name for name in os.environ if name.startswith(_OF_THE_HOST) or name == "MASTER")
    return [name for name in of_spark if name not in _KEPT_VARIABLES]


def _kill_drivers() -> None:
    """Kill this process's driver, and the scripts that start it: each is a session of its own."""
    for child in psutil.Process().children():
        with suppress(psutil.Error, OSError):
            if os.getsid(child.pid) == child.pid and "pyspark-shell" in child.cmdline():
                os.killpg(child.pid, signal.SIGKILL)


def log4j2_flag() -> str:
    return f"-Dlog4j2.configurationFile={_LOG4J2.as_uri()}"


def archive_path(java: Path) -> Path:
    """Return the path of the class-data archive for this Java, these jars and this training, also if it is missing."""
    jars = sorted(pyspark_jars().glob("*.jar"))
    # The archive has the classes that the training loaded: one of an older training lacks some.
    training = sha256(_TRAINING.read_bytes()).hexdigest()
    return class_archive_path(f"spark-{pyspark_version}", java, jars, (*_SMALL_JVM, _UNUSED_JAR, training))


def small_home(java: Path) -> Path:
    """Return a folder of links to Spark's files, without ``_UNUSED_JAR``; Spark's own one where none can be made."""
    jars, home = pyspark_jars(), archive_path(java).with_suffix("")
    with suppress(OSError):  # the cache of a container may be read-only, and another process may be faster
        if not home.is_dir():
            home.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f"{home.name}-", dir=home.parent) as folder:
                made = Path(folder, "home")
                (made / "jars").mkdir(parents=True)
                (made / "bin").symlink_to(jars.parent / "bin")
                for jar in jars.iterdir():
                    if not jar.match(_UNUSED_JAR):
                        (made / "jars" / jar.name).symlink_to(jar)
                made.rename(home)
    return home if home.is_dir() else jars.parent


def _start_archived(java: Path, folder: Path, memory: str) -> SparkDriver:
    """Start from the archive, if there is one. One that is so damaged that the JVM ends is removed."""
    archive = archive_path(java)
    try:
        return _started_here(archived_start(java, folder, memory))
    except TopicopsError:
        if not archive.is_file():
            raise
        _log.info("Spark's driver did not start from its class-data archive %s; it starts without", archive)
    driver = _started_here(_local_start(java, folder, memory, local_options(folder)))
    archive.unlink(missing_ok=True)
    return driver


def archived_start(java: Path, folder: Path, memory: str) -> Start:
    """Return how a driver of this machine is started, from the archive if there is one."""
    archive, options = archive_path(java), local_options(folder)
    if mark_used(archive):  # the log says whether it fits
        options += (f"-XX:SharedArchiveFile={archive}", f"-Xlog:cds:file={folder}/archive.log")
    return _local_start(java, folder, memory, options)


def _local_start(java: Path, folder: Path, memory: str, options: tuple[str, ...]) -> Start:
    """Return the start of a driver that takes no setting of another Spark or Hadoop on this machine."""
    settings = {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": shlex.join(options)}
    arguments = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    home = small_home(java)
    environment = {
        **dict.fromkeys(name for name in os.environ if name.startswith((*_OF_THE_HOST, *_OF_JAVA)) or name == "MASTER"),
        **_java_first(java),
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(folder / "no-settings"),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LAUNCHER_OPTS": " ".join(_SMALL_JVM),
    }
    return _start_of(home, arguments, folder, environment)


def local_options(folder: Path) -> tuple[str, ...]:
    """Flags of a small JVM that writes into ``folder`` alone."""
    places = (f"-Djava.io.tmpdir={folder}", f"-Duser.home={folder}", f"-XX:ErrorFile={folder}/crash.log")
    return (*_SMALL_JVM, _FIRST_HEAP, log4j2_flag(), *places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a JVM is started by ``spark-submit``. It ends when its stdin is closed.

    Source: pyspark.java_gateway#launch_gateway (4.3), which takes the environment from this process alone.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    defaults: Path


def _start_of(home: Path, arguments: Sequence[str], folder: Path, changed: Mapping[str, str | None]) -> Start:
    """None in ``changed`` removes a variable."""
    own = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / _ANSWER)}
    environment = {name: text for name, text in {**os.environ, **changed, **own}.items() if text is not None}
    return Start(
        command=[str(home / "bin" / "spark-submit"), *arguments, "pyspark-shell"],
        environment=environment,
        folder=folder,
        defaults=Path(environment.get("SPARK_CONF_DIR") or home / "conf", "spark-defaults.conf"),
    )


def _started_here(start: Start) -> SparkDriver:
    """Start a JVM that ends with this process, in a session of its own: Ctrl-C reaches this process alone."""
    with (start.folder / DRIVER_LOG).open("ab") as log:
        process = subprocess.Popen(
            start.command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=start.environment, start_new_session=True
        )
    driver = joined(process, start.folder, start.defaults)
    if driver is None:
        raise TopicopsError(f"Spark could not be started{_why_not_started(start.folder / DRIVER_LOG, start.defaults)}")
    (start.folder / _ANSWER).unlink()
    return driver


def joined(process: JavaProcess, folder: Path, defaults: Path | None = None) -> SparkDriver | None:
    """Connect to a JVM, once it says in its folder where; None where it ends before."""
    _silence_py4j()
    answer = folder / _ANSWER
    while process.poll() is None and not answer.is_file():
        time.sleep(_POLL_S)
    if process.poll() is not None:
        return None
    with answer.open("rb") as found:
        port, secret = read_int(found), UTF8Deserializer().loads(found)  # type: ignore[no-untyped-call]
    gateway = _connected(str(port), str(secret))
    gateway.proc = process
    return SparkDriver(gateway=gateway, folder=folder, defaults=defaults or folder / "no-settings")


def _why_not_started(log: Path, defaults: Path) -> str:
    """Return the last error of the log, and the file that may have caused it; without an error the log's end."""
    causes = _CAUSE.findall(log.read_text(encoding="utf-8", errors="replace"))
    if not causes:
        return f"; the end of its log:\n{last_lines(log)}"
    _kept.add(log)
    return f": {causes[-1]}{f'; Spark read {defaults}' if defaults.is_file() else ''}; its log is {log}"


def _connected(port: str, secret: str) -> JavaGateway:
    """PySpark's connection to a JVM that runs: it finds port and secret in this process's environment alone.

    They are there for this call. This is the only place that changes the environment of the process.
    """
    given = {"PYSPARK_GATEWAY_PORT": port, "PYSPARK_GATEWAY_SECRET": secret}
    before = {name: os.environ.pop(name, None) for name in given}
    os.environ.update(given)
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name, text in before.items():
            if text is None:
                del os.environ[name]
            else:
                os.environ[name] = text


def _silence_py4j() -> None:
    """Keep tracebacks of lost connections out of the log, also those of the root logger: the error says it all."""
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def driver_java() -> Path:
    """Return the Java for a driver. Raises ``TopicopsError`` where none fits, and for a uid without a name.

    OpenShift gives such a uid to each container. Source: com.sun.security.auth.module.UnixLoginModule, by which Hadoop
    logs in; it takes no user without a name.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        raise TopicopsError(
            f"this account (uid {os.getuid()}) has no name in /etc/passwd, and Spark needs one; add it, or use "
            "--engine python"
        ) from None
    try:
        pyspark_jars()
        return find_java(newest=newest_java(pyspark_version))
    except LocalClusterError as error:
        raise TopicopsError(f"Spark: {error}") from error


def newest_java(spark: str) -> int:
    """Return the newest Java that this release of Spark takes. Source: Spark's own overview page (4.1 and 4.2)."""
    major, minor = spark.split(".")[:2]
    return 25 if (int(major), int(minor)) >= (4, 2) else 21


def _java_first(java: Path) -> dict[str, str | None]:
    """Return the environment in which Spark's scripts take this Java, even where it is a script without a home."""
    return {"JAVA_HOME": None, "PATH": f"{java.parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def _own_folder() -> Path:
    """Return a new folder for all that the driver writes. Raises ``TopicopsError`` as ``require_room``."""
    with _told_of_a_disk():
        folder = Path(tempfile.mkdtemp(prefix="topicops-spark-"))
    atexit.register(_remove, folder)
    require_room(folder)
    return folder


def require_room(folder: Path) -> None:
    """Raise ``TopicopsError`` where nothing can be written, or not much: Java would start and hang until the end."""
    with _told_of_a_disk():
        write_atomically(folder / "room", bytes(1 << 20), is_durable=False)
        (folder / "room").unlink()
        free = shutil.disk_usage(folder).free
    if free < _ROOM_BYTES:
        raise TopicopsError(f"Spark has {free >> 20} MB for its files in {folder.parent}; {_TMPDIR_HELPS}")


@contextmanager
def _told_of_a_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        place = error.filename or tempfile.gettempdir()
        raise TopicopsError(f"Spark cannot write its files: {reason}: {place}; {_TMPDIR_HELPS}") from error


def _remove(folder: Path) -> None:
    """Remove the folder, but for a log that an error has named."""
    for file in folder.iterdir():
        if file not in _kept:
            shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()

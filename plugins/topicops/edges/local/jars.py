"""Kafka's broker jars and a Java that runs them: what the local cluster needs from outside.

The jars are resolved with the Ivy that pyspark ships, once for each machine, into a cache that all processes share.
``jars.sha256`` (``sha256sum`` form) pins their names and contents; nothing else reaches a class path.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from topicops.model.errors import LocalClusterError

KAFKA_VERSION = "3.9.2"
JAVA_VERSIONS = (17, 21)

Progress = Callable[[str], None]

_SUMS = Path(__file__).with_suffix(".sha256")
_FETCH_TIMEOUT_S = 900.0
_JAVA_TIMEOUT_S = 20.0

# `kafka_2.13` brings the broker and ZooKeeper; the tools and the log backend come without their own dependencies.
_IVY_MODULE = f"""\
<ivy-module version="2.0">
  <info organisation="topicops" module="local-cluster"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}" conf="default->default"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{KAFKA_VERSION}" conf="default->default"
                transitive="false"/>
    <dependency org="org.slf4j" name="slf4j-reload4j" rev="1.7.36" conf="default->default" transitive="false"/>
    <dependency org="ch.qos.reload4j" name="reload4j" rev="1.2.19" conf="default->default" transitive="false"/>
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True, slots=True)
class JarSet:
    """What one Ivy module brings, and nothing else."""

    title: str
    """``Kafka 3.9.2``: in messages; small and with a dash, its folder in the cache."""
    ivy_module: str
    sums: Mapping[str, str]
    """SHA-256 in hexadecimal by jar name."""

    @property
    def folder(self) -> str:
        return self.title.lower().replace(" ", "-")


def quiet(_message: str) -> None:
    """Progress that nobody watches."""


def kafka_jars(
    *,
    java: Path | None = None,
    cache: Path | None = None,
    ivy_settings: Path | None = None,
    sums: Mapping[str, str] | None = None,
    progress: Progress = quiet,
) -> tuple[Path, ...]:
    """Every jar of the broker's class path, checked; fetched first where the cache lacks one.

    Args:
        java: Runs Ivy; found as ``find_java`` does when left out, and only if something must be fetched.
        cache: Holds ``kafka-3.9.2/``; ``default_cache()`` when left out.
        ivy_settings: Ivy's settings file, for a company mirror; ``TOPICOPS_IVY_SETTINGS`` when left out.
        sums: SHA-256 by jar name; the pinned ones when left out.

    Raises:
        LocalClusterError: A jar has a wrong sum, or could not be fetched.
    """
    kafka = JarSet(f"Kafka {KAFKA_VERSION}", _IVY_MODULE, pinned_sums() if sums is None else sums)
    return jars_of(kafka, java=java, cache=cache, ivy_settings=ivy_settings, progress=progress)


def jars_of(
    wanted: JarSet,
    *,
    java: Path | None = None,
    cache: Path | None = None,
    ivy_settings: Path | None = None,
    progress: Progress = quiet,
) -> tuple[Path, ...]:
    """As ``kafka_jars``, for any set of jars."""
    cache = default_cache() if cache is None else cache
    folder = cache / wanted.folder
    if missing_jars(folder, wanted.sums):
        _make_folder(folder)
        with _locked(cache / f"{wanted.folder}.lock", wanted, progress):
            if missing_jars(folder, wanted.sums):
                _fetch(wanted, folder, java or find_java(), ivy_settings or _ivy_settings_from_environment(), progress)
    check_sums(folder, wanted.sums, remedy=f"delete {folder} and run again")
    return tuple(folder / name for name in sorted(wanted.sums))


def default_cache() -> Path:
    """``$TOPICOPS_CACHE``, else ``$XDG_CACHE_HOME/topicops``, else ``~/.cache/topicops``."""
    if own := os.environ.get("TOPICOPS_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).absolute() if base else Path.home() / ".cache") / "topicops"


def pinned_sums() -> dict[str, str]:
    """SHA-256 in hexadecimal by jar name."""
    pairs = (line.split() for line in _SUMS.read_text(encoding="ascii").splitlines())
    return {name: digest for digest, name in pairs}


def missing_jars(folder: Path, sums: Mapping[str, str]) -> list[str]:
    return [name for name in sums if not (folder / name).is_file()]


def check_sums(folder: Path, sums: Mapping[str, str], *, remedy: str) -> None:
    """Read every jar and compare. Raises ``LocalClusterError`` at the first one that is not the pinned one."""
    for name, expected in sums.items():
        with (folder / name).open("rb") as jar:
            found = hashlib.file_digest(jar, "sha256").hexdigest()
        if found != expected:
            raise LocalClusterError(f"{folder / name}: SHA-256 is {found}, pinned is {expected}; {remedy}")


def pyspark_jars() -> Path:
    """The folder of jars inside the installed pyspark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise LocalClusterError("pyspark is not installed, and its Ivy is needed; install topicops again")
    return Path(spec.origin).parent / "jars"


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """The first Java 17 or 21 of ``JAVA_HOME`` and ``PATH``.

    Raises:
        LocalClusterError: There is none; one line that says what was found and what to install.
    """
    refused = []
    for candidate in _java_candidates(environ):
        version = java_version(candidate)
        if version in JAVA_VERSIONS:
            return candidate
        refused.append(f"{candidate} is {'no working Java' if version is None else f'Java {version}'}")
    found = "; ".join(refused) or "there is no java in JAVA_HOME or PATH"
    raise LocalClusterError(
        f"Java 17 or 21 is needed, and {found}: install openjdk-17-jre-headless (or Temurin 17) and set JAVA_HOME to it"
    )


def java_version(java: Path) -> int | None:
    """The feature release, 17 for ``17.0.15``; None when it does not run."""
    try:
        result = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_JAVA_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', result.stderr + result.stdout)
    return int(match[1]) if match and result.returncode == 0 else None


def _java_candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(on_path)


def _ivy_settings_from_environment() -> Path | None:
    value = os.environ.get("TOPICOPS_IVY_SETTINGS")
    return Path(value) if value else None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalClusterError(
            f"{folder}: {error.strerror}; name a writable folder in TOPICOPS_CACHE for the jars"
        ) from error


@contextmanager
def _locked(lock: Path, wanted: JarSet, progress: Progress) -> Iterator[None]:
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that fetches the jars of {wanted.title}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _fetch(wanted: JarSet, folder: Path, java: Path, settings: Path | None, progress: Progress) -> None:
    """Resolve into a folder beside, check, then move jar by jar: a reader without the lock sees whole jars only."""
    if settings is not None and not settings.is_file():
        raise LocalClusterError(f"{settings}: no such Ivy settings file; correct TOPICOPS_IVY_SETTINGS")
    with tempfile.TemporaryDirectory(prefix=f"{wanted.folder}-", dir=folder.parent) as work:
        staging = Path(work)
        log = folder.parent / f"{wanted.folder}-ivy.log"
        _run_ivy(wanted, java, settings, staging, log, progress)
        if missing := missing_jars(staging / "lib", wanted.sums):
            raise LocalClusterError(
                f"Ivy did not fetch {', '.join(missing)}; see {log}, and check the network or mirror"
            )
        check_sums(staging / "lib", wanted.sums, remedy="the repository gave another file; ask whoever runs the mirror")
        for name in wanted.sums:
            (staging / "lib" / name).replace(folder / name)


def _run_ivy(wanted: JarSet, java: Path, settings: Path | None, staging: Path, log: Path, progress: Progress) -> None:
    (staging / "ivy.xml").write_text(wanted.ivy_module, encoding="utf-8")
    command = ivy_command(java, staging, settings)
    deadline = time.monotonic() + _FETCH_TIMEOUT_S
    with log.open("wb") as output:
        ivy = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            said = ""
            while ivy.poll() is None and time.monotonic() < deadline:
                if (message := _fetched(wanted, staging / "cache")) != said:
                    progress(message)
                    said = message
                time.sleep(0.5)
        finally:
            ivy.kill()
            ivy.wait()
    if ivy.returncode:
        raise LocalClusterError(
            f"{wanted.title} could not be fetched; Ivy's log is {log} and ends:\n{_last_words(log)}\n"
            "Check the network, or name a mirror in an Ivy settings file: TOPICOPS_IVY_SETTINGS"
        )


def ivy_command(java: Path, staging: Path, settings: Path | None) -> list[str]:
    """Ivy's command line; jars end in ``staging/lib``. Some of the artifacts are of type ``bundle``."""
    [ivy, *_] = sorted(pyspark_jars().glob("ivy-*.jar")) or [pyspark_jars() / "ivy.jar"]
    return [
        str(java), "-jar", str(ivy), "-warn", "-cache", str(staging / "cache"), "-types", "jar", "bundle",
        *(["-settings", str(settings)] if settings else []),
        "-ivy", str(staging / "ivy.xml"), "-confs", "default",
        "-retrieve", f"{staging}/lib/[artifact]-[revision](-[classifier]).[ext]",
    ]  # fmt: skip


def _fetched(wanted: JarSet, cache: Path) -> str:
    """How far Ivy is: it reads what every jar depends on first, which takes longest."""
    descriptors = sum(1 for _ in cache.glob("*/*/ivy-*.xml"))
    files = sum(1 for kind in ("jars", "bundles") for _ in cache.glob(f"*/*/{kind}/*.jar"))
    return f"fetching {wanted.title}: {descriptors} descriptors, {files} of {len(wanted.sums)} jars"


def _last_words(log: Path, lines: int = 8) -> str:
    """The end of Ivy's log without its rows of progress dots."""
    text = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(["  " + line.strip() for line in text if line.strip(" .\t") and "kB)" not in line][-lines:])

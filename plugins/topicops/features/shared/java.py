"""The Java that runs Kafka and Spark, the jars that pyspark brings, and where class-data archives (CDS) are kept."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from topicops.model.errors import LocalClusterError, TopicopsError

JAVA_VERSIONS = (17, 21, 25)
_TIMEOUT_S = 20.0
_UNUSED_S = 30 * 24 * 3600.0
"""Time without use after which an archive is removed, when another of its kind is created."""

_log = logging.getLogger(__name__)


def find_java(environ: Mapping[str, str] = os.environ, *, newest: int = 21) -> Path:
    """Return the first Java of ``JAVA_HOME`` and ``PATH`` that is one of ``JAVA_VERSIONS``, up to ``newest``.

    A warning says if it is not that of ``JAVA_HOME``. Raises ``LocalClusterError`` if there is none.
    """
    refused: list[str] = []
    taken = [version for version in JAVA_VERSIONS if version <= newest]
    for candidate in _java_candidates(environ):
        version = java_version(candidate)
        if version in taken:
            if refused:
                _log.warning("JAVA_HOME is not used, because %s; %s is used", refused[0], candidate)
            return candidate
        refused.append(f"{candidate} is {'no working Java' if version is None else f'Java {version}'}")
    found = "; ".join(refused) or "there is no java in JAVA_HOME or PATH"
    raise LocalClusterError(
        f"Java {', '.join(map(str, taken[:-1]))} or {taken[-1]} is needed, and {found}: install "
        "openjdk-21-jre-headless (or Temurin 21) and set JAVA_HOME to it"
    )


def java_version(java: Path) -> int | None:
    """Return the feature release, 17 for ``17.0.15``; None when ``java`` does not run."""
    try:
        result = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', result.stderr + result.stdout)
    return int(match[1]) if match and result.returncode == 0 else None


def _java_candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(on_path)


def noexec_problem(text: str) -> str:
    """Say why Java could not load a library that it unpacks into the temporary folder; empty: no such error."""
    if "UnsatisfiedLinkError" in text and "failed to map segment" in text:
        return "the folder for temporary files is mounted noexec: set TMPDIR to another"
    return ""


def last_lines(log: Path, lines: int = 15) -> str:
    """Return the end of a log, indented; a sentence when there is no log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
    except OSError:
        return "  (no log was written)"
    problem = noexec_problem("\n".join(text))
    return "\n".join(f"  {line}" for line in [*text, *filter(None, [problem])]) or "  (the log is empty)"


def pyspark_jars() -> Path:
    """Return the folder of jars of pyspark, which is not imported. Raises ``LocalClusterError`` where there is none."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise LocalClusterError("pyspark is not installed; install topicops again")
    jars = Path(spec.origin).parent / "jars"
    if not jars.is_dir():
        raise LocalClusterError(
            "only the client of Spark Connect is installed (pyspark-client), and no Spark: name a Connect server in "
            "TOPICOPS_SPARK, or run pip install 'topicops[spark]' in a new environment"
        )
    return jars


def class_archive_path(title: str, java: Path, jars: Iterable[Path], flags: Sequence[str]) -> Path:
    """Return the path of a class-data archive in the cache folder, whether it exists or not: decision 0012.

    The JVM accepts an archive only with the Java, the jars and the flags that it was created with, so its name depends
    on them.
    """
    # Whole seconds: a container image keeps no more of a file's time when it is sent to a registry.
    files = [(str(file), file.stat().st_size, int(file.stat().st_mtime)) for file in (java.resolve(), *jars)]
    key = repr([files, flags])
    return default_cache() / f"{title}-{sha256(key.encode()).hexdigest()[:16]}.jsa"


def created_archive(title: str, path: Callable[[], Path], create: Callable[[Path], None]) -> Path | None:
    """Return the archive, created if missing; None when that fails: without it a start only takes longer."""
    try:
        archive = path()
        if not archive.is_file():
            create(archive)
            _remove_unused(archive)
    except (TopicopsError, OSError, subprocess.SubprocessError) as error:
        _log.warning("no class-data archive for %s, which will start more slowly: %s", title, error)
        return None
    return archive


def mark_used(archive: Path) -> bool:
    """Return whether there is such an archive; its time is then that of now, so that it is kept."""
    with suppress(OSError):  # the cache of a container may be read-only
        os.utime(archive)
    return archive.is_file()


def _remove_unused(archive: Path) -> None:
    """Remove other archives of this kind, of earlier versions. A JVM keeps what it has mapped of a removed file."""
    kind = archive.name.partition("-")[0]
    for other in archive.parent.glob(f"{kind}-*.jsa"):
        with suppress(OSError):
            times = other.stat()
            if other != archive and max(times.st_atime, times.st_mtime) < time.time() - _UNUSED_S:
                other.unlink()
                shutil.rmtree(other.with_suffix(""), ignore_errors=True)  # of links, if it has one


def default_cache() -> Path:
    """Return ``$TOPICOPS_CACHE``, else ``$XDG_CACHE_HOME/topicops``, else ``~/.cache/topicops``."""
    if own := os.environ.get("TOPICOPS_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).absolute() if base else Path.home() / ".cache") / "topicops"

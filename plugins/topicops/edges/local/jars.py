"""Kafka's broker jars, which the local cluster runs on.

They are fetched once for each machine, from Maven Central or from the mirror in ``TOPICOPS_MAVEN_URL``, into a cache
that all processes share. ``jars.sha256`` (``sha256sum`` form) pins their paths in a Maven repository and their
contents. Nothing else reaches a class path.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from topicops.edges.cache_folder import default_cache
from topicops.edges.file_locks import locked
from topicops.edges.local.progress import Progress, quiet
from topicops.model.errors import LocalClusterError

KAFKA_VERSION = "3.9.2"
MIRROR = "TOPICOPS_MAVEN_URL"
MAVEN_CENTRAL = "https://repo1.maven.org/maven2"

_SUMS = Path(__file__).with_suffix(".sha256")
_DOWNLOADS_AT_ONCE = 8
_RETRIES = 2
_PROGRESS_S = 5.0


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that are fetched and used together."""

    title: str
    """``Kafka 3.9.2``: in messages; small and with a dash, its folder in the cache."""
    sums: Mapping[str, str]
    """SHA-256 in hexadecimal by path in a Maven repository."""

    @property
    def folder(self) -> str:
        return self.title.lower().replace(" ", "-")


def kafka_jars(
    *, cache: Path | None = None, sums: Mapping[str, str] | None = None, progress: Progress = quiet
) -> tuple[Path, ...]:
    """Every jar of the broker's class path, checked; those that the cache lacks are fetched first.

    Args:
        cache: Holds ``kafka-3.9.2/``; ``default_cache()`` when left out.
        sums: SHA-256 by path; the pinned ones when left out.

    Raises:
        LocalClusterError: A jar has a wrong sum, or could not be fetched.
    """
    wanted = JarSet(f"Kafka {KAFKA_VERSION}", pinned_sums() if sums is None else sums)
    return jars_of(wanted, cache=cache, progress=progress)


def jars_of(wanted: JarSet, *, cache: Path | None = None, progress: Progress = quiet) -> tuple[Path, ...]:
    """As ``kafka_jars``, for any set of jars."""
    cache = default_cache() if cache is None else cache
    folder = cache / wanted.folder
    if _missing(wanted, folder):
        _make_folder(folder)
        waiting = f"waiting for another process that fetches the jars of {wanted.title}"
        with locked(cache / f"{wanted.folder}.lock", on_wait=lambda: progress(waiting)):
            _fetch(wanted, folder, progress)
    jars = {folder / Path(path).name: expected for path, expected in wanted.sums.items()}
    for jar, expected in jars.items():
        _check_sum(jar, expected)
    return tuple(sorted(jars))


def pinned_sums() -> dict[str, str]:
    """SHA-256 in hexadecimal by path in a Maven repository."""
    pairs = (line.split() for line in _SUMS.read_text(encoding="ascii").splitlines())
    return {path: digest for digest, path in pairs}


def _missing(wanted: JarSet, folder: Path) -> list[str]:
    return [path for path in wanted.sums if not (folder / Path(path).name).is_file()]


def _check_sum(jar: Path, expected: str) -> None:
    with jar.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise LocalClusterError(f"{jar}: SHA-256 is {found}, pinned is {expected}; delete {jar.parent} and run again")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalClusterError(
            f"{folder}: {error.strerror}; name a writable folder in TOPICOPS_CACHE for the jars"
        ) from error


def _fetch(wanted: JarSet, folder: Path, progress: Progress) -> None:
    """Fetch what is missing. Pooch checks the sum of a download before it gives the file its name."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    mirror = (os.environ.get(MIRROR) or MAVEN_CENTRAL).rstrip("/")
    paths = {Path(path).name: path for path in _missing(wanted, folder)}
    repository = pooch.create(
        path=folder,
        base_url="",
        registry={name: f"sha256:{wanted.sums[path]}" for name, path in paths.items()},
        urls={name: f"{mirror}/{path}" for name, path in paths.items()},
        retry_if_failed=_RETRIES,
    )
    title = f"{wanted.title} from {urlsplit(mirror).hostname}"
    try:
        _fetch_at_once(repository.fetch, paths, lambda left: progress(f"fetching {title}: {left} jars to go"))
    except (OSError, ValueError) as error:  # errors of requests are OSErrors; a wrong sum is a ValueError
        reason = re.sub(r"//[^/@\s]*@", "//", str(error))  # the mirror's URL may hold a password
        raise LocalClusterError(
            f"{title} could not be fetched: {reason}\nCheck the network, or name a mirror of Maven Central in {MIRROR}"
        ) from error


def _fetch_at_once(fetch: Callable[[str], object], names: Iterable[str], progress: Callable[[int], None]) -> None:
    """Raise the first error; downloads that have not begun by then are left out."""
    pool = ThreadPoolExecutor(_DOWNLOADS_AT_ONCE)
    try:
        pending = {pool.submit(fetch, name) for name in names}
        while pending:
            progress(len(pending))
            done, pending = wait(pending, timeout=_PROGRESS_S, return_when=FIRST_EXCEPTION)
            for download in done:
                download.result()
    finally:
        pool.shutdown(cancel_futures=True)

"""Kafka's broker jars, which the local cluster runs on: one set for each release of Kafka.

They are fetched once for each machine, from Maven Central or from the mirror in ``TOPICOPS_MAVEN_URL``, into a cache
that all processes share. The files ``releases/kafka-<version>.sha256`` (``sha256sum`` form) pin their paths in a Maven
repository and their contents. For another patch version of a release, Kafka's own jars are those of that version, with
the sums that the repository keeps beside them. Nothing else reaches a class path.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache as cached
from pathlib import Path
from urllib.parse import urlsplit

from topicops.edges.file_locks import locked
from topicops.features.shared.java import default_cache
from topicops.model.errors import LocalClusterError, UsageError
from topicops.model.release import USUAL, Release

Progress = Callable[[str], None]
"""Function that takes one line for a person."""
MIRROR = "TOPICOPS_MAVEN_URL"
MAVEN_CENTRAL = "https://repo1.maven.org/maven2"

_PINNED = Path(__file__).parent / "releases"
_OWN = "org/apache/kafka/"
"""Folder of Kafka's own jars in a Maven repository; all others are libraries."""
_CORE = re.compile(r"kafka_[\d.]+-")
"""The jar of the broker, which every release has, with the version of Scala in its name."""
_DOWNLOADS_AT_ONCE = 8
_RETRIES = 2
_PROGRESS_S = 5.0
_NOT_FOUND = 404
_PINNED_BY = "sha256"


def quiet(_message: str) -> None:
    """Progress that is not shown."""


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that are fetched and used together."""

    title: str
    """``Kafka 3.9.2``: in messages; small and with a dash, its folder in the cache."""
    sums: Mapping[str, str]
    """SHA-256 by path in a Maven repository in hexadecimal, or another sum after its name, as ``sha1:b7e4…``."""

    @property
    def folder(self) -> str:
        return self.title.lower().replace(" ", "-")


@cached
def pinned_versions() -> Mapping[Release, str]:
    """Return the pinned patch version of each release, the oldest release first."""
    versions = [file.stem.partition("-")[2] for file in _PINNED.glob("kafka-*.sha256")]
    return dict(sorted((release_of(version), version) for version in versions))


def usual_version() -> str:
    """Return the version that runs where nothing else is asked for."""
    return pinned_versions()[USUAL]


def version_of(text: str) -> str:
    """Return the version that a user names: ``2.8.1`` is itself, ``2.8`` the pinned one, ``2`` the newest.

    Raises:
        UsageError: This is no release of Kafka, or one without pinned jars.
    """
    pinned = pinned_versions()
    if found := [release for release in pinned if str(release).partition(".")[0] == text]:
        return pinned[found[-1]]
    release = Release.parse(text)
    if release is None or "-" in text:
        raise UsageError(f"{text} is no release of Kafka; give one of {', '.join(map(str, pinned))}")
    if release not in pinned:
        oldest, *_, newest = pinned
        raise UsageError(f"the local cluster does not run Kafka {release}; it runs {oldest} to {newest}")
    return text if text.count(".") > 1 else pinned[release]


def newest_java(version: str) -> int:
    """Return the newest Java on which this Kafka runs: 3.9 and before need what Java 24 has taken away (JEP 486)."""
    return 25 if int(version.split(".")[0]) >= 4 else 21


def release_of(version: str) -> Release:
    """Return the release of a version that ``version_of`` gave."""
    release = Release.parse(version)
    if release is None:
        raise UsageError(f"{version} is no release of Kafka")
    return release


def kafka_jars(
    version: str | None = None,
    *,
    cache: Path | None = None,
    sums: Mapping[str, str] | None = None,
    progress: Progress = quiet,
) -> tuple[Path, ...]:
    """Return every jar of the broker's class path, checked; those that the cache lacks are fetched first.

    Args:
        version: As ``version_of`` gives it; ``usual_version()`` when left out.
        cache: Holds a folder for each version, such as ``kafka-3.9.2/``; ``default_cache()`` when left out.
        sums: By path; when left out the pinned ones.
        progress: Is also told when the sums of Kafka's own jars are not pinned.

    Raises:
        LocalClusterError: A jar has a wrong sum, or could not be fetched.
        UsageError: The repository has no such version.
    """
    version = version or usual_version()
    if sums is None:
        sums = sums_of(version, cache=cache, progress=progress)
    return jars_of(JarSet(f"Kafka {version}", sums), cache=cache, progress=progress)


def jars_of(wanted: JarSet, *, cache: Path | None = None, progress: Progress = quiet) -> tuple[Path, ...]:
    """Do as ``kafka_jars``, for any set of jars."""
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


def pinned_sums(version: str) -> dict[str, str]:
    """SHA-256 in hexadecimal by path in a Maven repository; empty for a version that is not pinned."""
    try:
        text = (_PINNED / f"kafka-{version}.sha256").read_text(encoding="ascii")
    except FileNotFoundError:
        return {}
    pairs = (line.split() for line in text.splitlines())
    return {path: digest for digest, path in pairs}


def sums_of(version: str, *, cache: Path | None = None, progress: Progress = quiet) -> dict[str, str]:
    """Return the pinned sums; for a version that is not pinned, those of the release's libraries and of its own jars.

    The repository keeps the latter beside the jars. Raises as ``kafka_jars``.
    """
    if sums := pinned_sums(version):
        return sums
    cache = default_cache() if cache is None else cache
    pinned = pinned_versions()[release_of(version)]
    progress(
        f"warning: Kafka {version} is not pinned, {pinned} is: the sums of its own jars come from the repository, "
        "from where the jars come too"
    )
    for path, digest in pinned_sums(pinned).items():
        if not path.startswith(_OWN):
            sums[path] = digest
            continue
        own = path.replace(f"/{pinned}/", f"/{version}/").replace(f"-{pinned}.jar", f"-{version}.jar")
        if found := _sum_beside(own, version, cache):
            sums[own] = f"sha1:{found}"
        elif _CORE.match(Path(own).name):
            raise UsageError(f"there is no Kafka {version} in {_mirror_host()}; {pinned} is pinned")
    return sums


def _sum_beside(path: str, version: str, cache: Path) -> str | None:
    """Return the repository's SHA-1 of the jar, once fetched from the cache; None if it has no such jar."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    folder = cache / f"kafka-{version}" / "sums"
    _make_folder(folder)
    name = f"{Path(path).name}.sha1"
    try:
        with locked(cache / f"kafka-{version}.lock"):
            file = Path(pooch.retrieve(f"{_mirror()}/{path}.sha1", known_hash=None, fname=name, path=folder))
    except OSError as error:  # errors of requests are OSErrors
        if getattr(getattr(error, "response", None), "status_code", None) == _NOT_FOUND:
            return None
        raise _not_fetched(f"Kafka {version} from {_mirror_host()}", error) from error
    return file.read_text(encoding="ascii").split()[0]


def _missing(wanted: JarSet, folder: Path) -> list[str]:
    return [path for path in wanted.sums if not (folder / Path(path).name).is_file()]


def _check_sum(jar: Path, expected: str) -> None:
    with jar.open("rb") as file:
        algorithm, digest = _algorithm_and_digest(expected)
        found = hashlib.file_digest(file, algorithm).hexdigest()
    if found != digest:
        name = "SHA-256" if algorithm == _PINNED_BY else algorithm
        raise LocalClusterError(f"{jar}: {name} is {found}, pinned is {digest}; delete {jar.parent} and run again")


def _algorithm_and_digest(expected: str) -> tuple[str, str]:
    algorithm, _, digest = expected.rpartition(":")
    return algorithm or _PINNED_BY, digest


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
    paths = {Path(path).name: path for path in _missing(wanted, folder)}
    repository = pooch.create(
        path=folder,
        base_url="",
        registry={name: ":".join(_algorithm_and_digest(wanted.sums[path])) for name, path in paths.items()},
        urls={name: f"{_mirror()}/{path}" for name, path in paths.items()},
        retry_if_failed=_RETRIES,
    )
    title = f"{wanted.title} from {_mirror_host()}"
    try:
        _fetch_at_once(repository.fetch, paths, lambda left: progress(f"fetching {title}: {left} jars to go"))
    except (OSError, ValueError) as error:  # errors of requests are OSErrors; a wrong sum is a ValueError
        raise _not_fetched(title, error) from error


def _not_fetched(title: str, error: Exception) -> LocalClusterError:
    reason = re.sub(r"//[^/@\s]*@", "//", str(error))  # the mirror's URL may hold a password
    return LocalClusterError(
        f"{title} could not be fetched: {reason}\nCheck the network, or name a mirror of Maven Central in {MIRROR}"
    )


def _mirror() -> str:
    return (os.environ.get(MIRROR) or MAVEN_CENTRAL).rstrip("/")


def _mirror_host() -> str | None:
    return urlsplit(_mirror()).hostname


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

"""Remove one link of the chain of safety from a copy of the package, and see which tests fail.

``links/*.toml`` lists the links by part of the chain. A link is a piece of source, what replaces it, and the tests that
must fail then. A piece that is not in its file exactly once is an error: the link has moved, and its entry with it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
LIST = Path(__file__).parent / "links"
AT_ONCE = 2
LONGEST_S = 300
WITHOUT_FIXTURES = ("tests/steps/", "tests/model/")
"""Folders whose tests use no fixture of ``tests/fixtures``."""
BROKEN = re.compile(r"(Attribute|Import|Name|Syntax|Type|UnboundLocal)Error:|Failed: Timeout")
"""How a test fails when the code without the link does not run, or never ends: then no test has noticed anything."""
FAILED = re.compile(r"^FAILED (?P<test>tests/[^\s\[]+)(?P<case>\[.*?\])?(?: - (?P<reason>.*))?$", re.MULTILINE)


class LinkError(Exception):
    """An entry of the list does not fit the code or the tests; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One check, and the tests that fail without it."""

    part: str
    name: str
    file: str
    """Below ``plugins/topicops``."""
    old: str
    new: str
    tests: tuple[str, ...]
    """Below ``tests``; each must fail by itself."""

    @property
    def test_paths(self) -> tuple[str, ...]:
        return tuple(f"tests/{test}" for test in self.tests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the tests of a link did without it."""

    link: Link
    failed: tuple[str, ...]
    """The tests that failed, each with the first line of its reason."""
    problem: str
    """Empty: every test noticed that the link was missing."""
    seconds: float

    @property
    def is_caught(self) -> bool:
        return not self.problem


def links() -> tuple[Link, ...]:
    """All links, in the order of the files and of their entries."""
    return tuple(link for path in sorted(LIST.glob("*.toml")) for link in _links_of(path))


def _links_of(path: Path) -> Iterator[Link]:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    for entry in content["link"]:
        yield Link(part=content["part"], **{**entry, "tests": tuple(entry["tests"])})


def source_without(link: Link, plugins: Path) -> str:
    """The text of the link's file without the link. Raises ``LinkError`` unless the link is there exactly once."""
    text = (plugins / "topicops" / link.file).read_text(encoding="utf-8")
    if (times := text.count(link.old)) != 1:
        raise LinkError(f"{link.name}: {link.file} has its text {times} times, not once: correct the list of links")
    changed = text.replace(link.old, link.new)
    try:
        compile(changed, link.file, "exec")
    except SyntaxError as error:
        raise LinkError(f"{link.name}: {link.file} cannot be compiled without it: {error}") from error
    return changed


def without(link: Link) -> Result:
    """Run the tests of a link against a copy of the package that does not have it."""
    started = time.monotonic()
    with TemporaryDirectory(prefix="topicops-link-") as folder:
        plugins = Path(shutil.copytree(ROOT / "plugins", Path(folder) / "plugins"))
        changed = source_without(link, plugins)
        (plugins / "topicops" / link.file).write_text(changed, encoding="utf-8")
        ended = run_tests(plugins, link.test_paths)
    failed = {
        match["test"]: f"{match['case'] or ''} {match['reason'] or ''}" for match in FAILED.finditer(ended.stdout)
    }
    return Result(
        link=link,
        failed=tuple(f"{test}{reason}" for test, reason in failed.items()),
        problem=_problem(link, ended, failed),
        seconds=time.monotonic() - started,
    )


def _problem(link: Link, ended: subprocess.CompletedProcess[str], failed: dict[str, str]) -> str:
    if ended.returncode not in (0, 1):
        return f"the tests could not run:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
    if silent := [test for test in link.test_paths if test not in failed]:
        return f"nobody noticed: {', '.join(silent)} passed without it"
    if broken := [reason for reason in failed.values() if BROKEN.search(reason)]:
        return f"the code without it does not run: {broken[0].strip()}"
    return ""


def run_tests(plugins: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run tests of this repository against the package in another folder."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    options = ["-q", "--tb=no", "-rf", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", "120"]
    if all(test.startswith(WITHOUT_FIXTURES) for test in tests):
        options += ["--noconftest", "--hypothesis-profile", "ci"]  # the fixtures take longer to import than all else
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env={**outside, "PYTHONPATH": str(plugins), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )


def removed_one_by_one(chosen: Iterable[Link]) -> Iterator[Result]:
    """The result of each link, in the order given; two at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(without, chosen)


def failing_with_all_links(chosen: Iterable[Link]) -> str:
    """What the tests print that fail although no link is missing; empty: they all pass."""
    tests = dict.fromkeys(test for link in chosen for test in link.test_paths)
    ended = run_tests(ROOT / "plugins", tuple(tests))
    return "" if ended.returncode == 0 else f"{ended.stdout}{ended.stderr}"


def table(results: Sequence[Result]) -> str:
    """Markdown: part, link, and what failed without it."""
    rows = ["| part | link that was removed | test that failed without it |", "|---|---|---|"]
    rows += [f"| {r.link.part} | {r.link.name} | {_seen(r)} |" for r in results]
    caught = sum(result.is_caught for result in results)
    return "\n".join([*rows, "", f"{caught} of {len(results)} links caught: {100 * caught // max(1, len(results))} %"])


def _seen(result: Result) -> str:
    tests = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in result.link.test_paths)
    return tests if result.is_caught else f"**not caught**: {result.problem.splitlines()[0]}"


def chosen_by(words: Sequence[str]) -> tuple[Link, ...]:
    """The links whose part, name or file contains one of the words; without words all."""
    return tuple(link for link in links() if not words or _is_named(link, words))


def _is_named(link: Link, words: Sequence[str]) -> bool:
    text = f"{link.part} {link.name} {link.file}".lower()
    return any(word.lower() in text for word in words)

"""An empty folder and a clean virtual environment: only what README and the tool itself print is typed."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.live import create_topics
from fixtures.page_commands import blocks_of, without_comment
from fixtures.wheel import clean_environment, run
from topicops_local.cluster import LocalCluster

END_OF_INPUT = "\x04"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """One of eighty columns, and a person who types one line after the other."""

    folder: Path
    environment: Mapping[str, str]
    seconds: list[tuple[str, float]] = field(default_factory=list)
    """What each line took, in order."""

    def type(self, line: str, *, answer: str = "") -> str:
        """What the line shows on both streams; it must succeed.

        Args:
            answer: To its only question; empty: Enter alone.
        """
        person, program = pty.openpty()
        _without_echo(program)
        os.write(person, f"{answer}\n{END_OF_INPUT}".encode())
        began = time.monotonic()
        words = ["bash", "-c", line]
        process = subprocess.Popen(
            words, cwd=self.folder, env=self.environment, stdin=program, stdout=program, stderr=program
        )
        os.close(program)
        try:
            shown = b"".join(_parts(person)).decode().replace("\r\n", "\n")
            status = process.wait()
        finally:
            process.kill()
            os.close(person)
        self.seconds.append((line, time.monotonic() - began))
        assert status == 0, f"{line}\n{shown}"
        return shown


def _without_echo(program: int) -> None:
    settings = termios.tcgetattr(program)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(program, termios.TCSANOW, settings)


def _parts(person: int) -> Iterator[bytes]:
    """What is shown, until the last program that has the terminal ends: Linux then answers with an error."""
    while True:
        try:
            yield os.read(person, 1 << 16)
        except OSError:
            return


pytestmark = pytest.mark.soak

Shown = Callable[[str, Terminal], None]

COMMAND = re.compile(r"^(?:  |.*; next: )(topicops .*?)(?: +#.*)?$", re.MULTILINE)
"""A command in what a command prints, without the remark behind it."""
UNDO = re.compile(r"^To take this run back: (topicops undo .*)$", re.MULTILINE)
CONFIGS: tuple[Mapping[str, str], ...] = (
    {},
    {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
    {"retention.ms": "86400000"},
    {"retention.ms": "259200000", "segment.bytes": "104857600", "compression.type": "lz4"},
    {"retention.bytes": "1073741824"},
)
DOMAINS = ("billing", "orders", "search", "stock", "web")


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """Yield where README's install was typed."""
    folder = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", folder / "venv")
    environment = {**clean_environment(), "NO_COLOR": "1", "PIP_NO_CACHE_DIR": "1"}
    environment["PATH"] = f"{folder / 'venv/bin'}:{environment['PATH']}"
    terminal = Terminal(folder=folder, environment=environment)
    terminal.type(readme()[0].replace("pip install .", f"pip install {wheel}"))
    yield terminal
    shutil.rmtree(folder)


@pytest.fixture
def shown(clean: Terminal, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Prints what each line took."""

    def show(title: str, terminal: Terminal) -> None:
        times = [*clean.seconds, *terminal.seconds]
        lines = [f"{seconds:6.1f} s  {without_comment(line)}" for line, seconds in times]
        with capsys.disabled():
            sys.stdout.write("\n".join(["", f"{title}: {sum(s for _, s in times):.1f} s", *lines, ""]))

    return show


def readme() -> list[str]:
    """Return the lines of the block "Start with your cluster"."""
    [start, *_] = blocks_of("README.md")
    return start


def with_address(init: str, cluster: LocalCluster) -> str:
    """README's line for this cluster; one with ZooKeeper is named by that, as the next page says."""
    written = "--bootstrap-servers b1:9092,b2:9092"
    assert written in init
    hosts = cluster.status().zookeeper_hosts
    named = f"--zookeeper {hosts}" if hosts else f"--bootstrap-servers {cluster.bootstrap_servers}"
    return init.replace(written, named)


def in_an_empty_folder(clean: Terminal, folder: Path) -> Terminal:
    folder.mkdir()
    return Terminal(folder=folder, environment=clean.environment)


def create_many(cluster: LocalCluster, count: int) -> None:
    """Topics of many sizes, of one to three replicas, with and without configs."""
    new = [
        NewTopic(f"{DOMAINS[n % 5]}.topic-{n}", 1 + n % 7, 3 if n % 10 else 1 + n % 3, config=CONFIGS[n // 5 % 5])
        for n in range(count)
    ]
    for start in range(0, count, 100):
        create_topics(cluster.bootstrap_servers, *new[start : start + 100])


def follow(terminal: Terminal, said: str) -> dict[str, list[str]]:
    """Type each command that was printed, and what that one prints in turn; gives what each showed, by its word."""
    todo, seen = COMMAND.findall(said), dict[str, list[str]]()
    assert todo, said
    while todo:
        line = todo.pop(0)
        said = terminal.type(line)
        seen.setdefault(line.split()[1], []).append(said)
        todo = [*(new for new in COMMAND.findall(said) if new not in todo[:1]), *todo]
    return seen


def imported(said: str) -> int:
    [count] = re.findall(r"(?:^|\x1b\[2K)([\d,]+) topics? imported", said, re.MULTILINE)
    return int(count.replace(",", ""))


@pytest.mark.parametrize(
    ("topics", "kraft"),
    [
        pytest.param(0, False, id="no topics"),
        pytest.param(1000, False, id="a thousand topics"),
        pytest.param(1000, True, id="a thousand topics and KRaft"),
    ],
)
def test_each_line_of_the_readme_and_then_each_that_the_tool_prints_works(
    cluster_home: Path, clean: Terminal, tmp_path: Path, shown: Shown, topics: int, kraft: bool
) -> None:
    cluster = LocalCluster.up(cluster_home, kraft=kraft, heap_mb=512)
    create_many(cluster, topics)
    first, *others = readme()[1:]
    first = with_address(first, cluster)

    by_readme = in_an_empty_folder(clean, tmp_path / "readme")
    by_readme.type(first)
    doctor, import_, plan, new, apply = others
    by_readme.type(doctor)
    assert imported(by_readme.type(import_)) == topics
    assert ("No changes." if topics else "Nothing was planned: no file") in by_readme.type(plan)
    by_readme.type(new)
    said = by_readme.type(apply, answer="y")
    assert "Apply this change? [y/N]" in said
    assert "Applied and verified: 1 done." in said
    shown(f"README, {topics} topics", by_readme)

    by_output = in_an_empty_folder(clean, tmp_path / "output")
    seen = follow(by_output, by_output.type(first))
    assert [*seen] == ["doctor", "import", "plan", "new", "apply"]
    assert imported(seen["import"][0]) == topics + 1
    assert "No changes." in seen["plan"][0]
    assert "Applied and verified: 1 done." in seen["apply"][0]
    shown(f"what init prints, {topics} topics", by_output)

    assert "The cluster is healthy" in by_output.type("topicops verify")
    described = by_output.type("topicops list --describe")
    assert {"first-topic", "payments.refunds"} <= set(re.findall(r"^Topic: (\S+)", described, re.MULTILINE))
    [undo] = UNDO.findall(seen["apply"][0])
    undone = by_output.type(undo)
    assert "it changed 1 topic" in undone
    assert "state: absent" in next((by_output.folder / "topics").rglob("first-topic.yaml")).read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """One whose cluster is gone after the test."""
    yield tmp_path / "local"
    if cluster := LocalCluster.find(tmp_path / "local/.topicops"):
        cluster.down(now=True)


def test_without_a_cluster_local_up_starts_one_and_prints_how_to_use_it(
    clean: Terminal, wheel: Path, local_wheel: Path, folder: Path, shown: Shown
) -> None:
    start = in_an_empty_folder(clean, folder)
    start.type(f"pip install {wheel} {local_wheel}")
    said = start.type("topicops local up")
    terminal = Terminal(folder=folder, environment=clean.environment)

    seen = follow(terminal, said)

    assert [*seen] == ["init", "doctor", "import", "plan", "new", "apply"]
    assert "Applied and verified: 1 done." in seen["apply"][0]
    shown("local up", terminal)

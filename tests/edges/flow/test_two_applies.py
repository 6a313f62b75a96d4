"""Two applies start at once; in half of the rounds the one that holds the lease is paused longer than its session."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures import znode_tree
from fixtures.killable import with_tests_on_path
from fixtures.live import is_stopped, until
from fixtures.racing_apply import PATIENCE_S, SESSION_S, TOPICS, Round, order
from fixtures.zookeeper import Chroot

SCRIPT = Path(__file__).parents[2] / "fixtures" / "racing_apply.py"
POINTS = ("after lease", "before recheck", "after recheck", "before intent", "after intent", "before confirm")
"""Where it is paused: anywhere but between the last look at the lease and the request, which no lease can guard."""
IN_THE_GAP = "before request"


@dataclass(frozen=True, slots=True)
class Request:
    left_at: int
    run: str
    topic: str
    was_made: bool


class Pair:
    """Two processes that live through all rounds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes = [self._started() for _ in range(2)]

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=with_tests_on_path(),
        )

    def race(self, number: int, hosts: str, point: str) -> tuple[list[Request], list[list[str]], bool]:
        """The requests in the order in which they left, what each process made of it, and whether one was paused."""
        log, flag = self._folder / f"log-{number}", self._folder / f"flag-{number}"
        for index, process in enumerate(self._processes):
            assert process.stdin is not None
            played = Round(hosts=hosts, run=f"cli/{index}", log=str(log), flag=str(flag), point=point)
            process.stdin.write(order(played))
            process.stdin.flush()
        if point:
            self._let_it_oversleep(log)
        answers = [json.loads(process.stdout.readline()) for process in self._processes if process.stdout]
        lines = log.read_text().splitlines() if log.exists() else []
        requests = sorted((Request(*json.loads(line)) for line in lines), key=lambda request: request.left_at)
        return requests, answers, flag.exists()

    def _let_it_oversleep(self, log: Path) -> None:
        """Wake it when its session must be over and the other one has sent a request, however slow the machine is."""

        def stopped() -> list[int]:
            return [index for index, process in enumerate(self._processes) if is_stopped(process.pid)]

        until(lambda: bool(stopped()), timeout_s=PATIENCE_S)
        [index] = stopped()
        time.sleep(1.8 * SESSION_S)
        until(lambda: log.exists() and f'"cli/{1 - index}"' in log.read_text(), timeout_s=PATIENCE_S)
        self._processes[index].send_signal(signal.SIGCONT)

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


def writers_in_turn(requests: Sequence[Request]) -> list[str]:
    """Return the runs in the order in which they sent, each once for as long as no other did."""
    turns: list[str] = []
    for request in requests:
        if turns[-1:] != [request.run]:
            turns.append(request.run)
    return turns


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.close()


def play(pair: Pair, chroot: Chroot, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(rounds):
        place = f"/round-{number}"
        chroot.client.create(place)
        znode_tree.lay(chroot.client, {place + path: data for path, data in znode_tree.BASE.items()})
        paused = number % 2 == 1
        point = f"{chance.choice(POINTS)}" if paused else ""
        point += f" #{chance.randint(2, 3)}" if point and point != "after lease" else ""

        requests, answers, was_paused = pair.race(number, chroot.hosts + place, point)

        story = f"seed {seed}, round {number}, point {point!r}: {requests} {answers}"
        turns = writers_in_turn(requests)
        assert len(turns) == len(set(turns)), f"two writers: {story}"
        assert sorted(r.topic for r in requests if r.was_made) == sorted(TOPICS), f"not each once: {story}"
        assert was_paused is paused, story


def test_two_applies_at_once_never_both_write(pair: Pair, chroot: Chroot) -> None:
    play(pair, chroot, rounds=4, seed=7)


@pytest.mark.soak
def test_a_hundred_times_two_applies_at_once_never_both_write(pair: Pair, chroot: Chroot) -> None:
    play(pair, chroot, rounds=100, seed=random.randrange(1 << 30))


def test_a_pause_in_the_gap_that_no_lease_can_guard_sends_one_request_and_undoes_nothing(
    pair: Pair, chroot: Chroot
) -> None:
    znode_tree.lay(chroot.client, znode_tree.BASE)

    requests, answers, was_paused = pair.race(0, chroot.hosts, IN_THE_GAP)

    assert was_paused
    assert sorted(r.topic for r in requests if r.was_made) == sorted(TOPICS), (requests, answers)
    assert [r.was_made for r in requests].count(False) == 1, "the request of the one that overslept"

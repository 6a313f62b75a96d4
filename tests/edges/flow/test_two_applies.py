"""Two applies start at once; in half of the rounds the one that holds the lease is paused longer than its session."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from fakes.changes import audit_origin
from fixtures import znode_tree
from fixtures.killable import with_tests_on_path
from fixtures.live import is_stopped, until
from fixtures.racing_apply import PATIENCE_S, SESSION_S, TOPICS, Round, order
from fixtures.store_proxy import FAULTS, faulty_proxy
from fixtures.stores import s3_home, s3_variables
from fixtures.zookeeper import Chroot
from topicops.edges.home.audit_files import read_audit_log
from topicops.edges.places import StoredPath
from topicops.model.runs.audit import chain_problems
from topicops.model.runs.results import OutcomeStatus

SCRIPT = Path(__file__).parents[2] / "fixtures" / "racing_apply.py"
POINTS = ("after lease", "before recheck", "after recheck", "before intent", "after intent", "before confirm")
"""Where it is paused: anywhere but between the last look at the lease and the request, which no lease can guard."""
APART_S = 300
"""How far the clocks of two hosts with one home are apart."""
IN_THE_GAP = "before request"


@dataclass(frozen=True, slots=True)
class Request:
    left_at: int
    run: str
    topic: str
    was_made: bool


class Pair:
    """Two processes that live through all rounds."""

    def __init__(self, folder: Path, home: str = "", variables: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start both, each with a state folder of its own, as on two hosts.

        Args:
            home: URL of the home that they share; empty: the lease is in ZooKeeper.
            variables: How they reach it.
        """
        self._folder, self._home = folder, home
        self._processes = [
            self._started(
                {
                    **variables,
                    "XDG_STATE_HOME": str(folder / f"host-{number}"),
                    "TOPICOPS_TEST_CLOCK_SHIFT_S": str(number * APART_S if home else 0),
                }
            )
            for number in range(2)
        ]

    def _started(self, variables: Mapping[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**with_tests_on_path(), **variables},
        )

    def race(self, number: int, hosts: str, point: str) -> tuple[list[Request], list[list[str]], bool]:
        """The requests in the order in which they left, what each process made of it, and whether one was paused."""
        log, flag = self._folder / f"log-{number}", self._folder / f"flag-{number}"
        for index, process in enumerate(self._processes):
            assert process.stdin is not None
            played = Round(hosts=hosts, run=f"cli/{index}", log=str(log), flag=str(flag), point=point, home=self._home)
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


def play(pair: Pair, chroot: Chroot, rounds: int, seed: int, *, pauses: bool = True) -> None:
    chance = random.Random(seed)
    for number in range(rounds):
        place = f"/round-{number}"
        chroot.client.create(place)
        znode_tree.lay(chroot.client, {place + path: data for path, data in znode_tree.BASE.items()})
        paused = pauses and number % 2 == 1
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


@pytest.fixture
def home(s3_server: str) -> StoredPath:
    return s3_home(s3_server)


@contextmanager
def two_hosts(folder: Path, home: StoredPath, address: str) -> Iterator[Pair]:
    pair = Pair(folder, home.bucket.url, s3_variables(address))
    try:
        yield pair
    finally:
        pair.close()


def require_whole_audit_log(home: StoredPath, rounds: int) -> None:
    log = read_audit_log(home / "audit", audit_origin().environment)
    assert [*chain_problems(log)] == []
    made = [line.topic for line in log.lines if line.outcome is OutcomeStatus.DONE]
    assert Counter(made) == dict.fromkeys(TOPICS, rounds), log.lines


def test_two_hosts_with_one_home_in_a_store_never_both_write(
    tmp_path: Path, chroot: Chroot, home: StoredPath, s3_server: str
) -> None:
    with two_hosts(tmp_path, home, s3_server) as pair:
        play(pair, chroot, rounds=4, seed=7)
    require_whole_audit_log(home, 4)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hundred_times_two_hosts_with_one_home_never_both_write(
    tmp_path: Path, chroot: Chroot, home: StoredPath, s3_server: str
) -> None:
    with two_hosts(tmp_path, home, s3_server) as pair:
        play(pair, chroot, rounds=200, seed=random.randrange(1 << 30))
    require_whole_audit_log(home, 200)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hosts_and_a_store_that_loses_delays_and_repeats_requests(
    tmp_path: Path, chroot: Chroot, home: StoredPath, s3_server: str
) -> None:
    seed = random.randrange(1 << 30)
    with faulty_proxy(s3_server, share=0.1, seed=seed) as (address, met), two_hosts(tmp_path, home, address) as pair:
        play(pair, chroot, rounds=40, seed=seed, pauses=False)
    assert set(met) == set(FAULTS), met
    require_whole_audit_log(home, 40)


def test_a_pause_in_the_gap_that_no_lease_can_guard_sends_one_request_and_undoes_nothing(
    pair: Pair, chroot: Chroot
) -> None:
    znode_tree.lay(chroot.client, znode_tree.BASE)

    requests, answers, was_paused = pair.race(0, chroot.hosts, IN_THE_GAP)

    assert was_paused
    assert sorted(r.topic for r in requests if r.was_made) == sorted(TOPICS), (requests, answers)
    assert [r.was_made for r in requests].count(False) == 1, "the request of the one that overslept"

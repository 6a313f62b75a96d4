"""A server that does not answer is waited for with words, and the words say what is waited for and until when."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence

import pytest

from fixtures.proxy import Fate, FrameProxy, Relay, Strike, Strikes, zookeeper_proxy
from fixtures.zookeeper import Chroot, ZooKeeperServer
from topicops.edges.zookeeper.lease import ZooKeeperLease
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.edges.zookeeper.session import ZooKeeperSession
from topicops.model import waits
from topicops.model.errors import ClusterUnreachableError, LeaseHeldError, LeaseLostError
from topicops.model.waits import told_waits

SAID_AFTER_S = 0.4
ANOTHER_RUN = "waiting for the lease, which another run holds"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The lines about waits, said each 0.4 s."""
    monkeypatch.setattr(waits, "SAID_AFTER_S", SAID_AFTER_S)
    monkeypatch.setattr(waits, "_LOOKED_S", 0.01)
    lines: list[str] = []
    with told_waits(lines.append):
        yield lines


def lease(hosts: str, *, run: str = "cli/1", timeout_s: float = 2, lock_timeout_s: float = 0) -> ZooKeeperLease:
    return ZooKeeperLease(hosts, run=run, operation="apply", timeout_s=timeout_s, lock_timeout_s=lock_timeout_s)


def proxied(hosts: str, rule: Strikes) -> tuple[FrameProxy, str]:
    server, _, chroot = hosts.partition("/")
    proxy = zookeeper_proxy(server, rule)
    return proxy, f"{proxy.hosts}/{chroot}"


def of_zookeeper(hosts: str, limit_s: float) -> re.Pattern[str]:
    return re.compile(rf"waiting for an answer of ZooKeeper at {re.escape(hosts)}: \d+ s, at most {limit_s:.0f} s")


def seconds_of(lines: Sequence[str]) -> list[int]:
    return [int(found) for line in lines for found in re.findall(r"(\d+) s, at most", line)]


def test_a_server_that_never_answers_is_named_while_it_is_waited_for(said: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ClusterUnreachableError):
            ZooKeeperReader(hosts, timeout_s=1).__enter__()

    assert of_zookeeper(hosts, 1).fullmatch(said[0])


@pytest.mark.parametrize(("request_name", "number"), [("getData", 1), ("create", 2)], ids=["a read", "the lease"])
def test_an_answer_that_never_comes_is_no_lease_of_another_run(
    hosts: str, said: list[str], request_name: str, number: int
) -> None:
    proxy, behind = proxied(hosts, Strikes(Strike(request_name, Fate.SWALLOW, number)))
    with proxy, pytest.raises(ClusterUnreachableError, match="no answer within 2 s"):
        lease(behind).__enter__()

    assert said
    assert not any("lease" in line for line in said)
    assert of_zookeeper(behind, 2).fullmatch(said[0])


def test_the_confirmation_of_a_lease_says_its_wait_as_one(
    zookeeper: ZooKeeperServer, chroot: Chroot, hosts: str, said: list[str]
) -> None:
    with Relay(zookeeper.hosts) as relay, lease(relay.hosts + chroot.path) as held:
        said.clear()
        relay.hold()
        with pytest.raises(LeaseLostError):
            held.confirm()
        lines, behind = list(said), held.session.hosts
        relay.release()

    assert [line for line in lines if not of_zookeeper(behind, 6).fullmatch(line)] == []
    assert len(lines) > 1
    assert seconds_of(lines) == sorted(seconds_of(lines))


def test_the_end_of_a_session_that_is_not_answered_is_said(
    zookeeper: ZooKeeperServer, chroot: Chroot, said: list[str]
) -> None:
    with Relay(zookeeper.hosts) as relay:
        session = ZooKeeperSession(relay.hosts + chroot.path, timeout_s=2)
        with session:
            said.clear()
            relay.hold()
        relay.release()

    assert re.fullmatch(
        rf"waiting for the end of the session with ZooKeeper at {session.hosts}: . s, at most 4 s", said[0]
    )


def test_the_lease_of_another_run_is_waited_for_with_true_seconds_over_all_rounds(
    hosts: str, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topicops.edges.zookeeper.lease.LONGEST_WATCH_S", 0.3)
    with lease(hosts, run="first"), pytest.raises(LeaseHeldError, match="run first"):
        lease(hosts, lock_timeout_s=2).__enter__()

    lines = [line for line in said if line.startswith(ANOTHER_RUN)]
    assert {line.partition(", at most ")[2] for line in lines} == {"2 s"}
    assert seconds_of(lines) == sorted(seconds_of(lines))
    assert seconds_of(lines)[-1] > 0


def test_a_lease_that_is_free_is_taken_without_a_word_about_another_run(hosts: str, said: list[str]) -> None:
    with lease(hosts):
        pass

    assert not any(line.startswith(ANOTHER_RUN) for line in said)

"""``topicops apply`` from a cold process to its verified end, beside the commands of kdef and of topicctl.

Each reads its own files of the same topics, compares them with the cluster, and changes what differs. kdef and topicctl
verify nothing; kdef deletes no topics; topicctl deletes one a process. Four turns on one cluster of three brokers with
topics of 6 partitions: creates, expansions, ten changes among many topics, deletes.

topicctl writes to ZooKeeper here, which is its faster way, and looks every 50 ms in place of every 10 s. It may read a
partition before the controller has made it, and stops then: it is started again, and the turn lasts on.

``python -m benchmarks.apply_peers --programs FOLDER [--rounds 5]``; it is no part of ``python -m benchmarks``, because
the folder must have the two programs. ``go build -o FOLDER`` makes them from the packages
``github.com/peter-evans/kdef`` (v0.6.0) and ``github.com/segmentio/topicctl/cmd/topicctl`` (v1.23.1).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.apply import (
    AFTER,
    BEFORE,
    LOOK_EVERY_S,
    MORE_PARTITIONS,
    PARTITIONS,
    REPLICAS,
    Cohort,
    is_led,
    on_brokers,
    require_changes,
)
from benchmarks.apply_at_once import AtOnce, creates, deletes, expansions
from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, run, table, timed, write
from benchmarks.verify import wait_until

RESULTS = Path(__file__).parent / "results"
OURS, KDEF, TOPICCTL = "topicops", "kdef", "topicctl"
WHY = "kdef and topicctl do not verify, and start without 0.4 s of imports"
"""Reason for a missed goal."""
MOST_STARTS = 5
"""How often topicctl is started in one turn."""


def ten_changes(names: Sequence[str]) -> Cohort:
    """Four in a hundred are new, three are expanded, three get another retention; the rest is as it shall be."""
    new, three = max(1, len(names) * 4 // 100), max(1, len(names) * 3 // 100)
    return Cohort(
        new=names[:new],
        wider=names[new : new + three],
        other=names[new + three : new + 2 * three],
        gone=(),
        same=names[new + 2 * three :],
    )


KINDS: Mapping[str, Callable[[Sequence[str]], Cohort]] = {
    "creates": creates, "expansions": expansions, "ten changes": ten_changes, "deletes": deletes,
}  # fmt: skip
GOALS: Mapping[tuple[str, str], float] = {
    (KDEF, "creates"): 1.0, (KDEF, "expansions"): 1.0, (KDEF, "ten changes"): 2.0,
    (TOPICCTL, "creates"): 0.4, (TOPICCTL, "expansions"): 0.4, (TOPICCTL, "ten changes"): 0.4,
    (TOPICCTL, "deletes"): 0.8,
}  # fmt: skip


@dataclass
class BesidePeers(AtOnce):
    """The turns of one program after the other, each with topics of its own."""

    programs: Path = Path()

    def peer_turn_s(self, who: str, kind: str) -> float:
        self.turn += 1
        cohort = KINDS[kind](self._names(self.turn))
        self._lay([*cohort.wider, *cohort.other, *cohort.gone, *cohort.same])
        self.turn += 1
        planned, plan = self._planned(cohort)
        require_changes(plan, cohort)
        folder = planned.topics.parent
        works: Mapping[str, Callable[[Path], None]] = {
            OURS: self._command,
            KDEF: partial(self._kdef, cohort),
            TOPICCTL: partial(self._topicctl, cohort),
        }
        seconds = timed(partial(works[who], folder))()
        wait_until(partial(self._is_as_wanted, cohort), look_every_s=LOOK_EVERY_S)
        self._clear([*cohort.new, *cohort.wider, *cohort.other, *cohort.same])
        return seconds

    def _is_as_wanted(self, cohort: Cohort) -> bool:
        """Whether the files are in effect; the peers place replicas their own way."""
        found = self.reader.traces([name for name, *_ in wanted(cohort)], states=True)
        lives = [(found[name].live, partitions, retention_ms) for name, partitions, retention_ms in wanted(cohort)]
        return all(traces.is_gone for traces in self.reader.traces(cohort.gone).values()) and all(
            live is not None
            and (live.partitions, live.overrides.get("retention.ms")) == (partitions, retention_ms)
            and is_led(live)
            for live, partitions, retention_ms in lives
        )

    def _kdef(self, cohort: Cohort, folder: Path) -> None:
        write_file(folder / "kdef.yml", {"seedBrokers": self.cluster.bootstrap_servers.split(",")})
        for name, partitions, retention_ms in wanted(cohort):
            spec = {"configs": {"retention.ms": retention_ms}, "partitions": partitions, "replicationFactor": REPLICAS}
            topic = {"apiVersion": "v1", "kind": "topic", "metadata": {"name": name}, "spec": spec}
            write_file(folder / "kdef" / f"{name}.yml", topic)
        self._require(folder, KDEF, "apply", "kdef/*.yml", "--config-path", "kdef.yml")

    def _topicctl(self, cohort: Cohort, folder: Path) -> None:
        hosts, _, chroot = self.cluster.zookeeper_hosts.partition("/")
        meta = {"name": "bench", "environment": "bench", "region": "here", "description": "One cluster."}
        spec = {
            "bootstrapAddrs": self.cluster.bootstrap_servers.split(","),
            "zkAddrs": hosts.split(","),
            "zkPrefix": chroot,
            "zkLockPath": "/topicctl/locks",
        }
        write_file(folder / "cluster.yaml", {"meta": meta, "spec": spec})
        for name, partitions, retention_ms in wanted(cohort):
            write_file(folder / "topicctl" / f"{name}.yaml", topicctl_topic(name, partitions, retention_ms))
        of_cluster = ("--cluster-config", "cluster.yaml")
        for name in cohort.gone:
            self._require(folder, TOPICCTL, "delete", "topic", name, *of_cluster, answer="yes\n")
        if not cohort.gone:
            apply = (TOPICCTL, "apply", "topicctl/*.yaml", "--skip-confirm", "--sleep-loop-duration", "50ms")
            self._require(folder, *apply, *of_cluster, starts=MOST_STARTS)

    def _require(self, folder: Path, program: str, *arguments: str, answer: str = "", starts: int = 1) -> None:
        for _ in range(starts):
            command = [str(self.programs / program), *arguments]
            done = subprocess.run(command, cwd=folder, input=answer, capture_output=True, text=True, check=False)
            if not done.returncode:
                return
        raise BenchmarkError(f"{program} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def wanted(cohort: Cohort) -> Iterator[tuple[str, int, str]]:
    """Name, partitions and ``retention.ms`` of each topic."""
    yield from ((name, PARTITIONS, BEFORE) for name in (*cohort.new, *cohort.same))
    yield from ((name, MORE_PARTITIONS, BEFORE) for name in cohort.wider)
    yield from ((name, PARTITIONS, AFTER) for name in cohort.other)


def topicctl_topic(name: str, partitions: int, retention_ms: str) -> object:
    meta = {"name": name, "cluster": "bench", "environment": "bench", "region": "here", "description": "One of many."}
    spec = {
        "partitions": partitions,
        "replicationFactor": REPLICAS,
        "placement": {"strategy": "any"},
        "settings": {"retention.ms": int(retention_ms)},
    }
    return {"meta": meta, "spec": spec}


def write_file(path: Path, value: object) -> None:
    """As JSON, which is YAML too."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


@contextmanager
def sides(programs: Path, topics: int) -> Iterator[Mapping[str, Side]]:
    with on_brokers(BesidePeers, topics) as bench:
        bench.programs = programs
        turns = [(OURS, kind) for kind in KINDS] + list(GOALS)
        yield {side(who, kind, topics): partial(bench.peer_turn_s, who, kind) for who, kind in sorted(turns)}


def comparisons(topics: int) -> Sequence[Comparison]:
    return [
        Comparison(
            id=f"apply-to-{peer}-{topics}-{kind}".replace(" ", "-"),
            numerator=side(OURS, kind, topics),
            denominator=side(peer, kind, topics),
            goal=goal,
            better="lower",
            why=WHY,
        )
        for (peer, kind), goal in GOALS.items()
    ]


def side(who: str, kind: str, topics: int) -> str:
    return f"{who}, {topics} topics, {kind}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.apply_peers", description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="the folder of kdef and topicctl")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    benchmark = Benchmark(
        name="apply_peers",
        topics=asked.topics,
        rounds=asked.rounds,
        comparisons=comparisons,
        sides=partial(sides, asked.programs.resolve()),
    )
    result = run(benchmark)
    print(table(result), flush=True)
    write(result, asked.results)
    return 0 if result.is_met else 1


if __name__ == "__main__":
    sys.exit(main())

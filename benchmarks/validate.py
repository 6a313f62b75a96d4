"""Specs from files to values and to every problem, against CSafeLoader with msgspec.

The files lie in memory, so that no disk is measured. The other reader has a schema of the same fields; it
knows no places, lets a key that stands twice pass, and takes text for a number or a truth as YAML 1.1 does.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from benchmarks.harness import Benchmark, BenchmarkError, Better, Comparison, Side, timed
from topicops.edges.specs.reader import read_tree
from topicops.flow.spec_files import validate_files
from topicops.model.memory import gc_paused
from topicops.steps.specs.layers import ReadFile
from topicops.steps.specs.validate import Validated, read_files

OTHER = "CSafeLoader + msgspec.convert"
READING = "reading, typed, with places"
WHOLE = "validate"

MEMORY = Path("/dev/shm")
"""Where Linux has files in memory."""
SEED = 4

_PROFILES = ("durable", "compacted", "short-lived")
_ENVIRONMENTS = ("staging", "prod-eu")
_DOMAINS = ("billing", "catalog", "fraud", "identity", "logistics", "payments", "pricing", "search", "stock", "web")
_NOUNS = ("orders", "refunds", "clicks", "sessions", "balances", "labels", "prices", "shipments", "accounts", "alerts")
_VERBS = ("created", "changed", "closed", "merged", "checked", "moved")
_RETENTIONS = ("1d", "3d", "7d", "14d", "30d", "90d", "604800000", "2592000000")

_PROFILE = """\
apiVersion: topicops/v1
kind: Profile
metadata: {{name: {name}}}
spec:
  replicationFactor: 3
  configs:
    cleanup.policy: {policy}
    min.insync.replicas: 2
"""
_ENVIRONMENT = """\
apiVersion: topicops/v1
kind: Environment
metadata: {{name: {name}}}
spec:
  cluster:
    id: x9ZkQ0mVTh2c7nUeYw1aBg
    class: production
    kafkaVersion: "3.9"
    zookeeper: {{connection: kafka_zookeeper}}
    kafka: {{connection: kafka}}
  defaults: {{partitions: 6, replicationFactor: 3}}
  limits: {{partitionsPerTopic: 128}}
"""


class Metadata(msgspec.Struct):
    name: str
    owner: str
    description: str = ""
    labels: dict[str, str] = {}
    environments: list[str] | None = None


class Spec(msgspec.Struct, rename="camel"):
    profile: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    keyed: bool = True
    placement: Literal["balanced", "kafka"] = "balanced"
    rack_aware: bool = True
    assignment: dict[int, list[int]] | None = None
    configs: dict[str, int | float | bool | str | None] = {}


class Topic(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A topic's file to the other reader."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: Spec | None = None
    lifecycle: dict[str, object] | None = None


def write_specs(folder: Path, topics: int) -> None:
    """``topics`` files of topics, three profiles and two environments; the same ones each time."""
    chance = random.Random(SEED)
    for number in range(topics):
        domain, noun = chance.choice(_DOMAINS), chance.choice(_NOUNS)
        name = f"{domain}.{noun}-{number:05}"
        _write(folder / f"{domain}-{number % 4}" / f"{name}.yaml", _topic(name, domain, noun, chance))
    for name in _PROFILES:
        policy = "compact" if name == "compacted" else "delete"
        _write(folder / "profiles" / f"{name}.yaml", _PROFILE.format(name=name, policy=policy))
    for name in _ENVIRONMENTS:
        _write(folder / "environments" / f"{name}.yaml", _ENVIRONMENT.format(name=name))


def _topic(name: str, domain: str, noun: str, chance: random.Random) -> str:
    """About 340 bytes, as people write them: most say a few things, some have a comment, one in a hundred is to go."""
    number, verb = chance.randrange(100), chance.choice(_VERBS)
    lines = ["apiVersion: topicops/v1", "kind: Topic", "metadata:", f"  name: {name}", f"  owner: team-{domain}"]
    lines += [f"  description: One event for each time that one of the {noun} is {verb}, keyed by its id."]
    lines += [f'  labels: {{tier: "{number % 3 + 1}", domain: {domain}}}'] if number % 5 < 4 else []
    lines += ["  environments: [staging, prod-eu]"] if number % 10 == 0 else []
    if number == 99:
        return "\n".join([*lines, "lifecycle:", "  state: absent", f"  reason: Nobody reads the {noun} any more.", ""])
    comment = "                   # as many as there are readers" if number % 4 == 0 else ""
    lines += ["spec:", f"  profile: {_PROFILES[number % 3]}", f"  partitions: {chance.choice((3, 6, 12, 24))}{comment}"]
    lines += ["  keyed: false"] if number % 6 == 0 and number % 3 != 1 else []
    lines += ["  configs:", f"    retention.ms: {chance.choice(_RETENTIONS)}"]
    lines += [f"    max.message.bytes: {chance.choice((1, 2, 4))}MiB"] if number % 2 else []
    lines += ["    compression.type: lz4"] if number % 3 == 0 else []
    return "\n".join([*lines, ""])


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with tempfile.TemporaryDirectory(prefix="topicops-bench-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        found: dict[str, Side] = {}
        for size in (topics, topics // 5):
            write_specs(Path(name) / str(size), size)
            found.update(_sides_of(Path(name) / str(size), size))
        yield found


def _sides_of(topics: Path, size: int) -> dict[str, Side]:
    _require_all_fine(validate(topics), size)
    if len(read_by_other(topics)) != size:
        raise BenchmarkError(f"the other reader did not read {size} topics")
    return {
        _side(OTHER, size): timed(partial(read_by_other, topics)),
        _side(READING, size): timed(partial(read_values, topics)),
        _side(WHOLE, size): timed(partial(validate, topics)),
    }


def read_by_other(topics: Path) -> list[Topic]:
    """Every topic's file, as fast as a few lines can; the collector is off, as it is for us."""
    domains = (folder for folder in os.scandir(topics) if folder.name not in ("profiles", "environments"))
    with gc_paused():
        files = [Path(file).read_bytes() for folder in domains for file in os.scandir(folder)]
        return [msgspec.convert(yaml.load(data, yaml.CSafeLoader), Topic, strict=False) for data in files]


def read_values(topics: Path) -> Mapping[str, ReadFile]:
    """What all files say, typed, each value with its place."""
    with gc_paused():
        return read_files(read_tree(topics))[0]


def validate(topics: Path) -> Validated:
    """All that ``topicops validate`` does but for printing."""
    return validate_files(topics, environment=None)


def _require_all_fine(found: Validated, size: int) -> None:
    if found.diagnostics or found.files != size + len(_PROFILES) + len(_ENVIRONMENTS):
        said = [diagnostic.summary for diagnostic in found.diagnostics[:3]]
        raise BenchmarkError(f"{size} topics without a problem were written; {found.files} files are judged: {said}")


_GOALS: tuple[tuple[str, str, str, float, Better], ...] = (
    ("csafeloader-to-reading", OTHER, READING, 2, "higher"),
    ("validate-to-reading", WHOLE, READING, 1.6, "lower"),
)
"""Name, both sides, what should come out, and which way."""


def comparisons(topics: int) -> Sequence[Comparison]:
    """At both sizes: what reading gains, and what judging adds to it."""
    return tuple(
        Comparison(
            id=f"{name}-{size}-files",
            numerator=_side(numerator, size),
            denominator=_side(denominator, size),
            goal=goal,
            better=better,
        )
        for size in (topics, topics // 5)
        for name, numerator, denominator, goal, better in _GOALS
    )


def _side(what: str, size: int) -> str:
    return f"{what}, {size}"


BENCHMARK = Benchmark(name="validate", topics=50_000, rounds=7, comparisons=comparisons, sides=sides)

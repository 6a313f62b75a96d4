"""What the rules of ``doctor`` share: findings, the report of them, and what makes a method a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from topicops.features.ask.doctor.values import DoctorFacts, KafkaFacts, ZooKeeperFacts
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.json_types import FormatVersion
from topicops.model.printable import printable
from topicops.model.specs.environment import Environment
from topicops.steps.reporting.facts_wording import why_command

T = TypeVar("T")


class Severity(StrEnum):
    """The gravest first."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


ERROR, WARNING, NOTICE = Severity.ERROR, Severity.WARNING, Severity.NOTICE


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule found, with all its places."""

    severity: Severity
    message: str
    """Place and problem, with a few of the places."""
    fix: str
    code: Code | None = None
    places: tuple[str, ...] = ()
    """All places: topics, partitions, brokers or servers."""
    id: str = ""
    """Id of the rule."""


NO_ZOOKEEPER_HERE = "none, so"
"""How the fact about ZooKeeper begins where the cluster has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """What ``doctor`` prints."""

    format_version: FormatVersion = "1.0"
    environment: str
    facts: Mapping[str, str]
    """Sentences by subject, in order."""
    findings: tuple[Finding, ...] = ()
    """Findings of all rules, errors first."""
    rules_applied: int = 0
    rules_not_applied: tuple[str, ...] = ()
    """Ids of the rules that were not applied, because something they need was not read."""
    verdict: str = ""
    """Nothing; it stays for readers of the first form."""

    @property
    def has_errors(self) -> bool:
        return any(finding.severity is ERROR for finding in self.findings)


NAMED = 3
"""Number of places that a sentence names; it counts the rest."""


def found(
    severity: Severity, message: str, places: Iterable[str], fix: str, code: Code | None = None
) -> Iterator[Finding]:
    """Yield one finding whose message ends with the places; nothing where there are none."""
    if places := tuple(places):
        yield Finding(severity, f"{message} {listed(places)}", fix, code, places)


def listed(places: Iterable[object]) -> str:
    """Return ``a, b, c and 4 more``."""
    found = tuple(map(str, places))
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(map(printable, found[:NAMED])) + more


def with_why(fix: str, topic: str, environment: str) -> str:
    """Return the fix, and the command that says why this topic, the first of those that are named, is as it is."""
    return f"{fix}; to see all causes: {why_command(topic, environment)}"


class NotReadError(Exception):
    """A rule needs an area that was not read."""


class Rules:
    """A class of rules: each public method is one, and its name is the rule's id. It yields findings without an id.

    The properties raise ``NotReadError`` where their area was not read; then the rule is not applied.
    """

    def __init__(self, facts: DoctorFacts) -> None:
        self.facts = facts

    @property
    def environment(self) -> Environment:
        return self.facts.environment

    @property
    def is_managed(self) -> bool:
        return self.environment.spec.cluster.is_managed

    @property
    def live(self) -> ClusterSnapshot:
        return _needed(self.facts.snapshot)

    @property
    def session(self) -> ZooKeeperFacts:
        return _needed(self.facts.zookeeper)

    @property
    def kafka(self) -> KafkaFacts:
        return _needed(self.facts.kafka)


def _needed(area: T | None) -> T:
    if area is None:
        raise NotReadError
    return area


class Rule(NamedTuple):
    id: str
    check: Callable[[DoctorFacts], Iterator[Finding]]


def rules_of(*kinds: type[Rules]) -> tuple[Rule, ...]:
    """Return the rules of these classes, in the order in which they stand there."""

    def rule(kind: type[Rules], name: str) -> Rule:
        return Rule(name.replace("_", "-"), lambda facts: getattr(kind(facts), name)())

    return tuple(rule(kind, name) for kind in kinds for name in vars(kind) if not name.startswith("_"))

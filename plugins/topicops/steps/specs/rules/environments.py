"""Environments: cluster, release and address are named; lease, schedules and rules are possible; exceptions last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import cast, get_args

from topicops.model.codes import CODES, Code
from topicops.model.errors import UsageError
from topicops.model.release import NEWEST, NO_ZOOKEEPER, OLDEST, USUAL, Release
from topicops.model.specs.environment import Risk, RowLevel
from topicops.model.specs.schedules import FORMS, PROBLEMS, schedule_problem
from topicops.steps.specs.conditions import read_condition
from topicops.steps.specs.fields import Section
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import CLUSTER_DEFAULTS, EnvironmentView
from topicops.steps.specs.suggestions import meant

_MOST_RULES = 100
_RULE_ID = re.compile(r"[a-z][a-z0-9-]{0,59}")


def production_names_its_cluster(view: EnvironmentView) -> Iterator[Finding]:
    cluster = view.environment_spec.section("cluster")
    if cluster.get("class", str) == "production" and "id" not in cluster:
        remedy = "read it from the znode /cluster/id; without it a wrong cluster is not noticed"
        summary = "a production environment needs cluster.id"
        yield Finding(Code.INCOMPLETE_ENVIRONMENT, cluster.file, cluster.first, summary, remedy)


def production_needs_a_second_person(view: EnvironmentView) -> Iterator[Finding]:
    """A warning: where nobody has a second person, the file may say so."""
    cluster, policy = view.environment_spec.section("cluster"), view.environment_spec.section("policy")
    if cluster.get("class", str) != "production":
        return
    remedy = "leave it out: in production the question alone counts, and authors approve up to notice"
    if "parameter" in policy.texts("approvals"):
        summary = "in production an approval by parameter is given by whoever starts the run"
        yield policy.finding(Code.APPROVES_ALONE, "approvals", summary, remedy)
    written = policy.get("authorApproves", str)
    if written in (Risk.RISKY, Risk.DESTRUCTIVE):
        summary = f"in production the author of a change may approve it alone up to risk {written}"
        yield policy.finding(Code.APPROVES_ALONE, "authorApproves", summary, remedy)


def releases_are_supported(view: EnvironmentView) -> Iterator[Finding]:
    cluster = view.environment_spec.section("cluster")
    version = cluster.get("kafkaVersion", str)
    if version is None:
        if cluster.get("class", str) == "production" and not cluster.is_unreadable("kafkaVersion"):
            summary = f"a production environment needs cluster.kafkaVersion; without it Kafka {view.release} is assumed"
            remedy = "write the brokers' release, which `topicops doctor` shows"
            yield Finding(Code.UNKNOWN_RELEASE, cluster.file, cluster.first, summary, remedy)
        return
    found = _release_problem(version, Release.parse(version), is_zookeeper=view.reads_zookeeper)
    if found:
        code, summary, remedy = found
        yield cluster.finding(code, "kafkaVersion", summary, remedy)


def _release_problem(written: str, release: Release | None, *, is_zookeeper: bool) -> tuple[Code, str, str] | None:
    """Return a code, what is wrong, and what to do."""
    if release is None:
        return Code.OUT_OF_RANGE, f"{written!r} is no Kafka version", f"write it like {USUAL}"
    if release < OLDEST:
        remedy = f"topicops supports Kafka {OLDEST} and later"
        return Code.OUT_OF_RANGE, f"Kafka {release} is older than {OLDEST}", remedy
    if release >= NO_ZOOKEEPER and is_zookeeper:
        return Code.INCOMPLETE_ENVIRONMENT, f"Kafka {release} has no ZooKeeper", "write source: kafka"
    if release > NEWEST:
        summary = f"Kafka {release} is newer than {NEWEST}: configs are checked by {NEWEST}'s rules"
        return Code.UNKNOWN_RELEASE, summary, "update topicops if it refuses a config that the brokers take"
    return None


def leases_can_be_had(view: EnvironmentView) -> Iterator[Finding]:
    """Where the brokers are the source there may be no ZooKeeper, and under KRaft there is none."""
    cluster = view.environment_spec.section("cluster")
    source = cluster.get_or("source", CLUSTER_DEFAULTS.source)
    if source == "kafka" and cluster.get_or("lease", "home") == "zookeeper":
        summary = "with source: kafka the lease cannot be in ZooKeeper"
        remedy = "leave it out, which is lease: home, or write lease: none where something else keeps runs apart"
        yield cluster.finding(Code.INCOMPLETE_ENVIRONMENT, "lease", summary, remedy)


def addresses_are_given(view: EnvironmentView) -> Iterator[Finding]:
    """Reading the cluster takes the brokers' address, and ZooKeeper's where ZooKeeper is the source."""
    cluster = view.environment_spec.section("cluster")
    if not cluster.values:
        return
    is_zookeeper = cluster.get_or("source", CLUSTER_DEFAULTS.source) == "zookeeper"
    for name, address in (("kafka", "bootstrapServers"), *([("zookeeper", "hosts")] if is_zookeeper else [])):
        endpoint = cluster.section(name)
        if not cluster.is_unreadable(name) and not {address, "connection"} & endpoint.values.keys():
            span = cluster.values[name].span if name in cluster else cluster.first
            remedy = f"write cluster.{name}: {{{address}: ...}}, or {{connection: ID}}"
            if name == "zookeeper":
                remedy += "; for brokers with KRaft set `source: kafka`"
            yield Finding(Code.INCOMPLETE_ENVIRONMENT, cluster.file, span, f"cluster.{name} names no address", remedy)


def airflow_takes_schedules_and_owner(view: EnvironmentView) -> Iterator[Finding]:
    airflow = view.environment_spec.section("airflow")
    for name, problem_of in PROBLEMS.items():
        written = airflow.get(name, str)
        if written is not None and (problem := problem_of(written)):
            remedy = FORMS if problem_of is schedule_problem else ""
            yield airflow.finding(Code.OUT_OF_RANGE, name, problem, remedy)


def exceptions_are_current(view: EnvironmentView) -> Iterator[Finding]:
    for exception in written_exceptions(view):
        code, until = exception.get("code", str), exception.get("until", datetime)
        if code is not None and not (code.startswith("TOP") and code in CODES):
            remedy = f"write it like {Code.MANY_PARTITIONS}"
            yield exception.finding(Code.OUT_OF_RANGE, "code", f"{code!r} is no code of a problem", remedy)
        if until is not None and until <= view.now:
            summary = "this exception is over"
            yield exception.finding(Code.EXCEPTION_OVER, "until", summary, "take it out, or renew it")


def written_exceptions(view: EnvironmentView) -> Iterator[Section]:
    """Yield the entries of the environment file and of its file of exceptions."""
    lists = [view.environment_spec.section("policy").items("exceptions")]
    if view.exceptions is not None:
        lists.append(view.exceptions.spec.items("exceptions"))
    return (item.value for items in lists for item in items if isinstance(item.value, Section))


def own_rules_can_be_judged(view: EnvironmentView) -> Iterator[Finding]:
    seen = set[str]()
    written = view.environment_spec.section("quality").items("rules")
    if len(written) > _MOST_RULES:
        summary, span = f"{len(written)} rules, and there may be {_MOST_RULES}", written[_MOST_RULES].span
        yield Finding(Code.OUT_OF_RANGE, view.environment_spec.file, span, summary)
    airflow = view.environment_spec.section("airflow")
    if written and airflow.get("engine", str) == "python":
        remedy = "write `auto` or `spark`, or remove the rules"
        yield airflow.finding(Code.OUT_OF_RANGE, "engine", "only Spark judges the conditions of quality.rules", remedy)
    for item in written:
        if not isinstance(rule := item.value, Section):
            continue
        name, level, holds = rule.get("id", str), rule.get("level", str), rule.get("holds", str)
        if name is not None and not _RULE_ID.fullmatch(name):
            remedy = "write lower-case letters, digits and hyphens, at most 60, with a letter first"
            yield rule.finding(Code.OUT_OF_RANGE, "id", f"{name!r} is no id of a rule", remedy)
        elif name and name.upper() in CODES:
            yield rule.finding(Code.OUT_OF_RANGE, "id", f"{name!r} is a rule of topicops", "choose another id")
        elif name in seen:
            yield rule.finding(Code.OUT_OF_RANGE, "id", f"two rules have the id {name!r}", "rename one of them")
        if holds is not None and level in get_args(RowLevel):
            try:
                read_condition(holds, cast("RowLevel", level))
            except UsageError as error:
                remedy = "docs/reference/quality.md#rules-of-your-own has columns and functions"
                yield rule.finding(Code.OUT_OF_RANGE, "holds", f"the condition cannot be used: {error}", remedy)
        seen |= {name} if name else set()


def environments_come_after_others(view: EnvironmentView) -> Iterator[Finding]:
    own = view.environment_name
    if own is None:
        return
    files = (file for file in view.environments if file.document.kind == "Environment")
    after = {file.document.stem: file.spec.section("policy").texts("after") for file in files}
    policy = view.environment_spec.section("policy")
    for item in policy.items("after"):
        name = item.value
        if not isinstance(name, str):
            continue
        if name not in view.environment_names:
            others = view.environment_names - {own}
            remedy = meant(name, others, f"there are: {', '.join(sorted(others)) or 'no others'}")
            summary = f"no environment is called {name!r}"
            yield Finding(Code.ENVIRONMENT_ORDER, policy.file, item.span, summary, remedy)
        elif circle := _way(name, own, after):
            summary = f"{own} comes after {', which comes after '.join(circle)}: nothing would ever be sent"
            remedy = "take one of the names out of policy.after"
            yield Finding(Code.ENVIRONMENT_ORDER, policy.file, item.span, summary, remedy)


def _way(start: str, end: str, after: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names from ``start`` to ``end``, each after the next one; empty: there is no way."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while ways:
        way = ways.pop()
        if way[-1] == end:
            return way
        ways += [(*way, name) for name in after.get(way[-1], ()) if name not in seen]
        seen.update(after.get(way[-1], ()))
    return ()


def environments_of_one_cluster_share_no_names(view: EnvironmentView) -> Iterator[Finding]:
    """Judge environments of which at least one has a prefix: it looks at topics with that prefix alone."""
    cluster = view.environment_spec.section("cluster")
    for other in (file for file in view.environments if file.document.kind == "Environment"):
        theirs = other.spec.section("cluster").section("topics").get("prefix", str) or ""
        is_one = other.document.stem != view.environment_name and is_one_cluster(cluster, other.spec.section("cluster"))
        overlaps = view.prefix.startswith(theirs) or theirs.startswith(view.prefix)
        if is_one and overlaps and view.prefix:
            names = cluster.section("topics")
            has = f"has the prefix {theirs}" if theirs else "has no prefix, and so looks at all topics"
            summary = f"the environment {other.document.stem} of the same cluster {has}"
            yield names.finding(Code.SHARED_NAMES, "prefix", summary, "choose prefixes of which none begins another")


_ADDRESSES = (
    ("zookeeper", "hosts"),
    ("zookeeper", "connection"),
    ("kafka", "bootstrapServers"),
    ("kafka", "connection"),
)


def is_one_cluster(one: Section, other: Section) -> bool:
    """Say whether two environments name one cluster: by the id where both have it, else by any address."""
    ids = (one.get("id", str), other.get("id", str))
    if all(ids):
        return ids[0] == ids[1]
    pairs = ((one.section(block).get(name, str), other.section(block).get(name, str)) for block, name in _ADDRESSES)
    return any(address is not None and address == theirs for address, theirs in pairs)

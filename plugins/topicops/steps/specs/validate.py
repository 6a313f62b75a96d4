"""From files to desired topics of one environment, or every problem of every file at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import chain

import msgspec

from topicops.model.codes import Code
from topicops.model.errors import SpecError, UsageError
from topicops.model.json_types import assignment_digest, known, sha256_of
from topicops.model.memory import gc_paused
from topicops.model.specs.desired import API_VERSION, Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Diagnostic, Location, Severity
from topicops.model.specs.document import Fields, FileKind, Tree
from topicops.model.specs.environment import Environment, EnvironmentSpec, Written
from topicops.model.specs.files import (
    EnvironmentFile,
    ExceptionsFile,
    ExceptionsSpec,
    OwnersFile,
    ProfileFile,
    TopicFile,
)
from topicops.steps.specs.fields import Section, Value, read_section
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.foreign import file_of_another_tool
from topicops.steps.specs.layers import (
    TOPIC_DEFAULTS,
    ConfigsPlace,
    EnvironmentView,
    MergedTopic,
    ReadFile,
    TopicSource,
    places_by_config,
)
from topicops.steps.specs.needed import NOTHING_LEFT_OUT, LeftOut, Needs, Problem, sort_problems
from topicops.steps.specs.rules import RULES, Rule
from topicops.steps.specs.rules.environments import written_exceptions
from topicops.steps.specs.rules.names import files_are_named_after_topics, names_are_legal, names_do_not_clash
from topicops.steps.specs.rules.ownership import profiles_exist
from topicops.steps.specs.rules.values import assignments_are_sound, lifecycles_are_complete

MODELS: Mapping[FileKind, type[Written]] = {
    "Topic": TopicFile,
    "Profile": ProfileFile,
    "Environment": EnvironmentFile,
    "Exceptions": ExceptionsFile,
    "Owners": OwnersFile,
}

NOT_LIFTABLE = frozenset(
    {
        Code.DEFINED_TWICE,
        Code.UNKNOWN_CONFIG,
        Code.INVALID_CONFIG,
        Code.THROTTLE,
        Code.UNKNOWN_PROFILE,
        Code.UNKNOWN_OVERRIDDEN,
        Code.INCOMPLETE_LIFECYCLE,
        Code.INCOMPLETE_ENVIRONMENT,
        Code.EXCEPTION_OVER,
        Code.ENVIRONMENT_ORDER,
        Code.UNKNOWN_ENVIRONMENT,
        Code.UNKNOWN_EXCEPTED,
    }
)
"""Errors that leave nothing to plan; an exception does not help."""

BLIND_TO_ENVIRONMENTS: tuple[Rule, ...] = (
    assignments_are_sound,
    files_are_named_after_topics,
    lifecycles_are_complete,
    names_are_legal,
    names_do_not_clash,
    profiles_exist,
)
"""Rules that find the same in each environment: they run once, without an environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """The result of validating a folder of files."""

    diagnostics: tuple[Diagnostic, ...]
    """Diagnostics by file, line, column and code."""
    files: int
    environment: Environment | None = None
    """None means that no environment was asked for, or that there are errors."""
    desired: Desired | None = None
    """None as above."""
    left_out: LeftOut = NOTHING_LEFT_OUT
    """Parts with errors that were not needed."""

    @property
    def has_errors(self) -> bool:
        return any(diagnostic.is_error for diagnostic in self.diagnostics)

    def require(self) -> tuple[Environment, Desired]:
        """Return both halves of a good answer. Raises ``SpecError``: with all diagnostics."""
        if self.environment is None or self.desired is None:
            raise SpecError(self.diagnostics)
        return self.environment, self.desired


@gc_paused()
def validate(
    tree: Tree, *, environment: str | None, now: datetime, rules: Sequence[Rule] = RULES, needs: Needs | None = None
) -> Validated:
    """Check every file, and the topics as ``environment`` has them; None means as each environment has them.

    With an ``environment``, errors in the files of other environments are warnings: they stop those alone.

    Args:
        tree: All files of the folder.
        environment: Name of a file in ``environments/``.
        now: An aware time; pauses and exceptions end by it.
        needs: With an ``environment``: the topics whose files must be valid; other topics with errors are left out.
            None: all must be valid.

    Raises ``UsageError``: there is no such environment.
    """
    if environment is not None:
        check_environments(tree, [environment])
    return _judged(_read(tree, now, rules), environment, needs)


def validate_each(
    tree: Tree, environments: Iterable[str], *, now: datetime, needs: Needs | None = None
) -> Iterator[Validated]:
    """Do as ``validate`` for one environment after the other; what they share is read and judged once.

    Raises ``UsageError``: there is no such environment.
    """
    wanted = tuple(environments)
    check_environments(tree, wanted)
    with gc_paused():
        read = _read(tree, now, RULES)
    for environment in wanted:
        with gc_paused():
            judged = _judged(read, environment, needs)
        yield judged


Lifted = frozenset[tuple[str | None, str]]
"""Topic and code of exceptions that are in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadTree:
    """What all environments of a tree share."""

    tree: Tree
    rules: Sequence[Rule]
    no_environment: EnvironmentView
    found: Sequence[Problem]
    """Problems of files and their fields."""
    found_everywhere: Mapping[Rule, Sequence[Finding]]
    lifted_anywhere: Lifted


def _read(tree: Tree, now: datetime, rules: Sequence[Rule]) -> _ReadTree:
    files, found = read_files(tree)
    no_environment = _in_none(tree, files, now)
    return _ReadTree(
        tree=tree,
        rules=rules,
        no_environment=no_environment,
        found=[Problem(found) for found in (*tree.problems, *(finding.diagnostic() for finding in found))],
        found_everywhere={rule: tuple(rule(no_environment)) for rule in BLIND_TO_ENVIRONMENTS},
        lifted_anywhere=_lifted_in(_in_environment(no_environment, name) for name in environment_names(tree)),
    )


def _judged(read: _ReadTree, environment: str | None, needs: Needs | None) -> Validated:
    """Make the views here, so that they go afterwards: each holds all topics as one environment has them."""
    tree, names = read.tree, environment_names(read.tree) if environment is None else [environment]
    views = [_in_environment(read.no_environment, name) for name in names] or [read.no_environment]
    problems = list(read.found)
    for view in views:
        problems += _problems(view, read.rules, read.found_everywhere, read.lifted_anywhere)
    judged = list(_of_others_warn(problems, environment))
    left_out = NOTHING_LEFT_OUT
    if needs is not None and environment is not None:
        prefix = views[0].prefix
        judged, left_out = sort_problems(judged, tree, views[0], lambda name: needs(prefix + name))
    ordered = _once(problem.diagnostic for problem in judged)
    found = Validated(diagnostics=ordered, files=tree.files, left_out=left_out)
    if environment is None or found.has_errors:
        return found
    desired = _desired(views[0], environment, tree.files, ordered, left_out)
    return replace(found, environment=_environment(views[0]), desired=desired)


def _of_others_warn(problems: Iterable[Problem], environment: str | None) -> Iterator[Problem]:
    for problem in problems:
        diagnostic = problem.diagnostic
        *_, folder, name = ("", *diagnostic.file.split("/"))
        its = name.removesuffix(".yaml").removesuffix(".exceptions")
        if environment is None or folder != "environments" or its == environment or not diagnostic.is_error:
            yield problem
        else:
            summary = f"{diagnostic.summary}; this stops environment {its} alone"
            yield problem._replace(diagnostic=replace(diagnostic, severity=Severity.WARNING, summary=summary))


def environment_names(tree: Tree) -> list[str]:
    """Return the environments that have a file, also one that cannot be read."""
    return [document.stem for document in tree.documents if document.kind == "Environment"]


def check_environments(tree: Tree, environments: Iterable[str]) -> None:
    """Raise ``UsageError`` for one that has no file."""
    names = environment_names(tree)
    for environment in environments:
        if environment not in names:
            known = ", ".join(names) or "none"
            raise UsageError(f"no environment is called {environment!r}; in environments/ there are: {known}")


# ---- reading ----


def read_files(tree: Tree) -> tuple[dict[str, ReadFile], list[Finding]]:
    """Return files whose fields could be read, by path, and what is wrong with their fields."""
    files: dict[str, ReadFile] = {}
    found: list[Finding] = []
    for document in tree.documents:
        if document.root is None:
            continue
        body, problems = read_section(document.root, MODELS[document.kind], document.file)
        foreign = [tool] if (tool := file_of_another_tool(document)) else _foreign(body, document.kind)
        found += foreign or problems
        if not foreign and isinstance(document.root, Fields):
            files[document.file] = (TopicSource if document.kind == "Topic" else ReadFile)(document, body)
    return files, found


def _foreign(body: Section, kind: FileKind) -> list[Finding]:
    """Return findings for a file of another kind than its folder holds; then nothing else in it is checked."""
    return [
        body.finding(Code.UNKNOWN_KIND, name, f"{name} {given!r} is not known here", f"write {name}: {wanted}")
        for name, wanted in (("apiVersion", API_VERSION), ("kind", kind))
        if (given := body.get(name, str)) is not None and given != wanted
    ]


def view_of(tree: Tree, environment: str, now: datetime) -> EnvironmentView:
    """Return the files as ``environment`` has them; what cannot be read is left out, and nothing is judged."""
    return _in_environment(_in_none(tree, read_files(tree)[0], now), environment)


def _in_none(tree: Tree, files: Mapping[str, ReadFile], now: datetime) -> EnvironmentView:
    """Return the files as they are in no environment."""
    topics = tuple(source for source in files.values() if isinstance(source, TopicSource))
    profiles = {d.stem: files.get(d.file) for d in tree.documents if d.kind == "Profile"}
    common = (ConfigsPlace(file.spec.section("configs"), None) for file in profiles.values() if file is not None)
    own = (ConfigsPlace(topic.spec.section("configs"), topic) for topic in topics if topic.state != "absent")
    return EnvironmentView(
        topics=topics,
        profiles=profiles,
        environment=None,
        exceptions=None,
        now=now,
        unread_topics=frozenset(d.stem for d in tree.documents if d.kind == "Topic" and d.file not in files),
        environments=tuple(f for f in files.values() if f.document.kind in ("Environment", "Exceptions")),
        environment_names=frozenset(environment_names(tree)),
        owners=next((f for f in files.values() if f.document.kind == "Owners"), None),
        shared_configs=places_by_config(chain(common, own)),
    )


def _in_environment(view: EnvironmentView, environment: str) -> EnvironmentView:
    its = {file.document.kind: file for file in view.environments if file.document.stem == environment}
    file = its.get("Environment")
    return replace(view, environment=file, exceptions=its.get("Exceptions"), environment_unreadable=file is None)


# ---- judging ----


def unlifted(tree: Tree, environment: str, now: datetime) -> Iterator[Finding]:
    """Every problem that is an error as ``environment`` has the topics; what keeps files from being read is not one."""
    files, found = read_files(tree)
    no_environment = _in_none(tree, files, now)
    each = {name: _in_environment(no_environment, name) for name in environment_names(tree)}
    view = each[environment]
    lifted = _lifted_for(view, _lifted_in(each.values()))
    for finding in (*found, *(finding for rule in RULES for finding in rule(view))):
        if finding.diagnostic(lifted=(finding.topic, finding.code) in lifted).is_error:
            yield finding


def _problems(
    view: EnvironmentView,
    rules: Sequence[Rule],
    found_everywhere: Mapping[Rule, Iterable[Finding]],
    lifted_anywhere: Lifted,
) -> Iterator[Problem]:
    lifted = _lifted_for(view, lifted_anywhere)
    for rule in rules:
        for finding in found_everywhere[rule] if rule in found_everywhere else rule(view):
            diagnostic = finding.diagnostic(lifted=(finding.topic, finding.code) in lifted)
            yield Problem(diagnostic, finding.topic, finding.owner)


def _lifted_in(views: Iterable[EnvironmentView]) -> Lifted:
    return Lifted().union(*map(_lifted, views))


def _lifted(view: EnvironmentView) -> Lifted:
    found = set()
    for exception in written_exceptions(view):
        topic, code, until = exception.get("topic", str), exception.get("code", str), exception.get("until", datetime)
        is_over = exception.is_unreadable("until") or (until is not None and until <= view.now)
        if topic and code and is_liftable(code) and not is_over:
            found.add((topic, code))
    return frozenset(found)


def is_liftable(code: str) -> bool:
    """Return whether an exception can make a warning of it."""
    return code.startswith("TOP3") and code not in NOT_LIFTABLE


def _lifted_for(view: EnvironmentView, anywhere: Lifted) -> Lifted:
    """Exceptions that apply here; for topics not in this environment, the exceptions of their own environments."""
    if not anywhere:
        return anywhere
    here = {topic.label for topic in view.here}
    return _lifted(view) | {(topic, code) for topic, code in anywhere if topic not in here}


_SEVERAL_AT_A_PLACE = frozenset({Code.MISSING_FIELD, Code.OVER_BUDGET, Code.POLICY_RULE})
"""Codes that may appear once for each missing field, each rule, or each environment in which a budget is exceeded."""


def _once(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sort, and keep one of a code at each place: topics that share a bad value share its diagnostic, errors first."""
    kept: dict[tuple[object, ...], Diagnostic] = {}
    for diagnostic in diagnostics:
        which = diagnostic.summary if diagnostic.code in _SEVERAL_AT_A_PLACE else ""
        place = (*diagnostic.sort_key, which)
        if place not in kept or (diagnostic.is_error and not kept[place].is_error):
            kept[place] = diagnostic
    return tuple(sorted(kept.values(), key=lambda diagnostic: (*diagnostic.sort_key, diagnostic.summary)))


# ---- the answer ----


def _environment(view: EnvironmentView) -> Environment | None:
    if view.environment is None:
        return None
    spec = msgspec.convert(_plain(view.environment.spec), known(EnvironmentSpec))
    if view.exceptions is not None:
        more = msgspec.convert(_plain(view.exceptions.spec), known(ExceptionsSpec)).exceptions
        policy = msgspec.structs.replace(spec.policy, exceptions=(*spec.policy.exceptions, *more))
        spec = msgspec.structs.replace(spec, policy=policy)
    return Environment(
        name=view.environment.document.stem,
        spec=spec,
        file=view.environment.file,
        locations=dict(_locations(view.environment.spec, "")),
    )


def _plain(section: Section) -> dict[str, object]:
    return {name: _plain_value(value.value) for name, value in section.values.items()}


def _plain_value(value: object) -> object:
    match value:
        case Section():
            return _plain(value)
        case tuple():
            return tuple(_plain_value(item.value) for item in value if isinstance(item, Value))
        case _:
            return value


def _locations(section: Section, prefix: str) -> Iterator[tuple[str, Location]]:
    for name, value in section.values.items():
        yield f"{prefix}{name}", section.location(name)
        if isinstance(value.value, Section):
            yield from _locations(value.value, f"{prefix}{name}.")


def _desired(
    view: EnvironmentView, environment: str, files: int, diagnostics: Iterable[Diagnostic], left_out: LeftOut
) -> Desired:
    merged = {topic.source.file: topic for topic in view.merged}
    here = [topic for topic in view.here if topic.label not in left_out.topics]
    found = (_topic(t, merged.get(t.file), environment, view.prefix) for t in here)
    topics = sorted(found, key=lambda topic: topic.name)
    return Desired(
        environment=environment,
        topics={topic.name: topic for topic in topics},
        files=files,
        warnings=tuple(d for d in diagnostics if d.severity is Severity.WARNING),
        digest=sha256_of([_digested(topic) for topic in topics]),
        left_out=frozenset(view.prefix + name for name in left_out.topics),
        prefix=view.prefix,
    )


def _topic(source: TopicSource, merged: MergedTopic | None, environment: str, prefix: str) -> DesiredTopic:
    """Return one topic; ``merged`` is None for a tombstone."""
    lifecycle, spec, metadata = source.lifecycle, source.spec, source.metadata
    return DesiredTopic(
        name=prefix + source.label,
        owner=metadata.get("owner", str) or "",
        location=metadata.location("name"),
        description=metadata.get("description", str) or "",
        labels={k: v.value for k, v in metadata.section("labels").values.items() if isinstance(v.value, str)},
        lifecycle=Lifecycle(source.state or Lifecycle.PRESENT),
        reason=lifecycle.get("reason", str) or "",
        not_before=lifecycle.get("notBefore", datetime),
        until=lifecycle.get("until", datetime),
        topic_id=lifecycle.section("topicIds").get(environment, str),
        partitions=(merged.number("partitions") if merged else 0) or 0,
        replication_factor=(merged.number("replicationFactor") if merged else 0) or 0,
        keyed=source.keyed,
        placement=spec.get("placement", str) or TOPIC_DEFAULTS.placement,
        rack_aware=spec.get_or("rackAware", TOPIC_DEFAULTS.rack_aware),
        assignment=merged.assignment if merged else None,
        configs={name: merged.configs[name].text for name in sorted(merged.configs)} if merged else {},
        locations=_topic_locations(source, merged),
    )


def _topic_locations(source: TopicSource, merged: MergedTopic | None) -> dict[str, Location]:
    places = {name: source.spec.location(name) for name in source.spec.values if name not in ("configs", "overrides")}
    places |= {f"lifecycle.{name}": source.lifecycle.location(name) for name in source.lifecycle.values}
    if merged is not None:
        places |= {name: setting.location for name, setting in merged.settings.items()}
        places |= {"assignment": places["partitions"]} if merged.assignment else {}
        places |= {f"configs.{name}": setting.location for name, setting in merged.configs.items()}
    return places


def _digested(topic: DesiredTopic) -> dict[str, object]:
    """Return what the digest of ``Desired`` covers: the topic's values without their places."""
    return {
        **{name: getattr(topic, name) for name in _VALUES},
        "not_before": topic.not_before.isoformat() if topic.not_before else None,
        "until": topic.until.isoformat() if topic.until else None,
        "assignment": assignment_digest(topic.assignment) if topic.assignment else None,
    }


_VALUES = tuple(field.name for field in fields(DesiredTopic) if not field.name.startswith("location"))


def with_folder_named(validated: Validated, *, read: str, named: str) -> Validated:
    """Return the same answer, with every place that a plan may hold in folder ``named`` instead of ``read``.

    Both end in ``/``, or are empty. So a plan is the same wherever it is made; diagnostics keep the names by which a
    person finds the files.
    """
    if read == named:
        return validated

    def renamed(file: str) -> str:
        return named + file.removeprefix(read)

    def moved(locations: Mapping[str, Location]) -> dict[str, Location]:
        return {field: replace(location, file=renamed(location.file)) for field, location in locations.items()}

    environment, desired = validated.environment, validated.desired
    if environment:
        environment = replace(environment, file=renamed(environment.file), locations=moved(environment.locations))
    if desired:
        topics = {
            name: replace(
                topic,
                location=replace(topic.location, file=renamed(topic.location.file)),
                locations=moved(topic.locations),
            )
            for name, topic in desired.topics.items()
        }
        desired = replace(desired, topics=topics)
    return replace(validated, environment=environment, desired=desired)

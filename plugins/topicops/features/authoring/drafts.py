"""Specs for live topics, such that the next plan has nothing to do for them.

Each draft is checked against all rules and planned before it is written. A topic gets no spec if the rules would
refuse it, or if the plan would change or block the topic.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from topicops.features.authoring.exceptions_file import Read, WrittenException, exceptions_file, with_exceptions
from topicops.features.authoring.importable import (
    ImportContext,
    InexpressibleOverride,
    LeftOut,
    expressible_configs,
    inexpressible_overrides,
    sort_topics,
)
from topicops.features.authoring.owners import TopicOwners, domain_of
from topicops.features.authoring.shared_profiles import SpecValues, new_profiles, profile_text, shared_profiles
from topicops.features.shared.document_values import field_of
from topicops.features.shared.yaml_text import Content, document_text
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.json_types import FormatVersion
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.release import Release
from topicops.model.specs.desired import Desired
from topicops.model.specs.document import Document, Fields, Span, Tree
from topicops.model.specs.environment import Environment
from topicops.steps.planning.diff import diff
from topicops.steps.planning.plan import plan
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.validate import is_liftable, unlifted, validate, view_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What the command line asks for."""

    owners: TopicOwners
    domain: str | None = None
    """Folder of every new topic file; None means the first dotted part of the topic's name."""
    only: str | None = None
    """Glob; other topics are left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What came of every live topic that matches ``only``."""

    format_version: FormatVersion = "1.0"
    imported: tuple[str, ...]
    """Topics that get a file."""
    files: tuple[str, ...]
    """New files by path below ``topics/``: profiles, then topics."""
    exceptions: tuple[WrittenException, ...]
    """New exceptions, by topic and code."""
    left_out: tuple[LeftOut, ...]
    unsayable: tuple[InexpressibleOverride, ...]
    """Overrides of imported topics that stay live although no spec can name them."""
    protected: tuple[str, ...]
    described: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportInputs:
    """The existing files, which are valid, and the live cluster."""

    tree: Tree
    environment: Environment
    desired: Desired
    live: ClusterSnapshot
    exceptions_text: str | None
    """The environment's file of exceptions; None means that there is none."""
    now: datetime


def draft_import(inputs: ImportInputs, options: ImportOptions, read: Read) -> tuple[dict[str, str], ImportResult]:
    """Draft specs for every live topic that a spec can describe.

    Returns:
        The texts to write in order, by path below ``topics/``: the whole file of exceptions if some are added, then
        ``ImportResult.files``; and the result.

    Raises:
        SpecError: A draft cannot be read back.
        UsageError: Exceptions cannot be added to the existing file.
    """
    context = ImportContext(
        environment=inputs.environment,
        desired=inputs.desired,
        live=inputs.live,
        files_by_topic={d.stem: d.file for d in inputs.tree.documents if d.kind == "Topic"},
        owners=options.owners,
    )
    found = sort_topics(context, only=options.only)
    builder = _DraftBuilder(inputs, options, read)
    topics, left_out = {topic.name: topic for topic in found.importable}, list(found.left_out)
    while True:
        draft = builder.draft(topics)
        findings = tuple(unlifted(builder.tree_with(draft), inputs.environment.name, inputs.now))
        if builder.excludes_more_configs(draft, findings):
            continue
        refused = _not_liftable(findings, topics) or builder.changed_by_plan(draft, findings, topics)
        if not refused:
            break
        left_out += refused
        gone = {each.topic for each in refused}
        topics = {name: topic for name, topic in topics.items() if name not in gone}
    exceptions = _exceptions_for(findings)
    path = exceptions_file(inputs.environment.name)
    texts = {path: builder.exceptions_text(exceptions), **draft.texts} if exceptions else {**draft.texts}
    result = ImportResult(
        imported=tuple(topics),
        files=tuple(draft.texts),
        exceptions=exceptions,
        left_out=tuple(sorted(left_out, key=lambda each: each.topic)),
        unsayable=tuple(chain.from_iterable(inexpressible_overrides(t, builder.release) for t in topics.values())),
        protected=found.protected,
        described=found.described,
    )
    return texts, result


def _not_liftable(findings: Iterable[Finding], topics: Container[str]) -> list[LeftOut]:
    """New topics with a finding that no exception can lift."""
    found = {p.topic: p for p in findings if p.topic is not None and p.topic in topics and not is_liftable(p.code)}
    return [LeftOut(topic=name, code=problem.code, reason=problem.summary) for name, problem in found.items()]


def _exceptions_for(findings: Iterable[Finding]) -> tuple[WrittenException, ...]:
    """One for each topic and code; existing topics that clash with a new one are included."""
    summaries = {(p.topic, p.code): p.summary for p in findings if p.topic is not None and is_liftable(p.code)}
    return tuple(
        WrittenException(topic=topic, code=code, reason=f"Imported as it is: {summary}.")
        for (topic, code), summary in sorted(summaries.items())
    )


class _Draft(NamedTuple):
    """New files that may still be rejected."""

    topics: Mapping[str, Document]
    """By path below ``topics/``, as are the others."""
    profiles: Mapping[str, Document]
    texts: Mapping[str, str]


class _DraftBuilder:
    """Makes and checks the drafts of one import, until one needs no change."""

    def __init__(self, inputs: ImportInputs, options: ImportOptions, read: Read) -> None:
        self.inputs, self.options, self.read = inputs, options, read
        view = view_of(inputs.tree, inputs.environment.name, inputs.now)
        self.shared = shared_profiles(view)
        self.taken = tuple(view.profiles)
        self.release = inputs.environment.spec.cluster.release
        self.environments = [d.stem for d in inputs.tree.documents if d.kind == "Environment"]
        self.own_configs: frozenset[str] = frozenset()
        """Configs that no profile may hold: an exception can lift their findings only for one topic."""

    def draft(self, topics: Mapping[str, LiveTopic]) -> _Draft:
        wanted = {name: _values_of(topic, self.release) for name, topic in topics.items()}
        profiles = new_profiles(wanted, self.shared, own_configs=self.own_configs, taken=self.taken)
        shared = self.shared.with_profiles(profiles)
        choices = shared.best_of_each(wanted)
        used = {name for name, _ in choices.values()}
        profile_texts = {f"profiles/{n}.yaml": profile_text(n, p) for n, p in sorted(profiles.items()) if n in used}
        domain = self.options.domain
        topic_texts = {f"{domain or domain_of(n)}/{n}.yaml": self._text_of(n, *choice) for n, choice in choices.items()}
        return _Draft(
            topics={path: self.read(path, text) for path, text in topic_texts.items()},
            profiles={path: self.read(path, text) for path, text in profile_texts.items()},
            texts={**profile_texts, **topic_texts},
        )

    def excludes_more_configs(self, draft: _Draft, findings: Iterable[Finding]) -> bool:
        """Keep configs out of profiles where the rules refuse them; True if that changes the next draft."""
        elsewhere = (name for name in self.environments if name != self.inputs.environment.name)
        tree = self.tree_with(draft)
        found = (*findings, *(f for name in elsewhere for f in unlifted(tree, name, self.inputs.now)))
        files = {document.file: document for document in draft.profiles.values()}
        bad = {key for f in found if f.topic is None and f.file in files for key in _keys_at(files[f.file], f.span)}
        if bad <= self.own_configs:
            return False
        self.own_configs |= bad
        return True

    def changed_by_plan(
        self, draft: _Draft, findings: Iterable[Finding], topics: Mapping[str, LiveTopic]
    ) -> list[LeftOut]:
        """New topics that a plan would change or block."""
        inputs, exceptions = self.inputs, _exceptions_for(findings)
        path = exceptions_file(inputs.environment.name)
        more = (self.read(path, self.exceptions_text(exceptions)),) if exceptions else ()
        after = validate(self.tree_with(draft, *more), environment=inputs.environment.name, now=inputs.now)
        environment, desired = after.require()
        delta = diff(map(desired_row, desired.topics.values()), map(live_row, inputs.live.topics.values()))
        change_set = plan(desired, inputs.live, delta, environment, now=inputs.now)
        moved: dict[str, tuple[Code | None, str]] = {}
        moved |= {change.topic: (None, f"its spec would {change.action} it") for change in change_set.changes}
        moved |= {blocked.topic: (blocked.codes[0], blocked.reasons[0]) for blocked in change_set.blocked}
        return [LeftOut(topic=name, code=moved[name][0], reason=moved[name][1]) for name in topics if name in moved]

    def exceptions_text(self, exceptions: Sequence[WrittenException]) -> str:
        return with_exceptions(self.inputs.exceptions_text, exceptions, self.inputs.environment.name, self.read)

    def tree_with(self, draft: _Draft, *more: Document) -> Tree:
        """The existing and the new files; a new one replaces the existing one of the same name."""
        every = (*self.inputs.tree.documents, *draft.profiles.values(), *draft.topics.values(), *more)
        documents = sorted({document.file: document for document in every}.values(), key=lambda each: each.file)
        return Tree(documents=tuple(documents), files=len(documents))

    def _text_of(self, topic: str, profile: str | None, own: SpecValues) -> str:
        metadata: dict[str, Content] = {"name": topic, "owner": self.options.owners.of(topic) or ""}
        if len(self.environments) > 1:  # without it, the spec would create the topic in every environment
            metadata["environments"] = (self.inputs.environment.name,)
        spec: dict[str, Content] = {} if profile is None else {"profile": profile}
        return document_text("Topic", metadata, {"spec": {**spec, **own.content()}})


def _values_of(topic: LiveTopic, release: Release) -> SpecValues:
    (replication_factor,) = topic.replication_factors
    return SpecValues(
        partitions=topic.partitions, replication_factor=replication_factor, configs=expressible_configs(topic, release)
    )


def _keys_at(profile: Document, span: Span) -> list[str]:
    """The configs of a profile that stand on the line of a finding."""
    configs = field_of(profile.root, "spec", "configs")
    entries = configs.entries if isinstance(configs, Fields) else ()
    return [key.text for key, _ in entries if key.span.line == span.line]

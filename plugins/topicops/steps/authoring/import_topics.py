"""adopt: specs for live topics, written so that the next plan has nothing to do for them.

What is proposed is held to all rules and planned before anybody writes it: a topic whose spec would be refused,
change anything or be blocked gets none.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.specs.desired import Desired
from topicops.model.specs.document import Document, Fields, Span, Tree
from topicops.model.specs.document_values import field_of
from topicops.model.specs.environment import Environment
from topicops.steps.authoring.exceptions_file import Read, WrittenException, exceptions_file, with_exceptions
from topicops.steps.authoring.importable import (
    LeftOut,
    Sorted,
    Surroundings,
    UnsayableOverride,
    sayable_configs,
    sort_topics,
    unsayable_overrides,
)
from topicops.steps.authoring.owners_and_domains import domain_of
from topicops.steps.authoring.shared_profiles import SpecValues, new_profiles, profile_text, shared_profiles
from topicops.steps.authoring.yaml_text import Content, document_text
from topicops.steps.planning.diff import diff
from topicops.steps.planning.plan import plan
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.validate import is_liftable, unlifted, validate, view_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What a person says of the files to be."""

    owner: str
    domain: str | None = None
    """The folder of every new topic file; None: the first dotted part of its name."""
    only: str | None = None
    """A glob; other topics are left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """Files to write, and what became of every live topic that was asked for."""

    files: Mapping[str, str]
    """New texts by path below ``topics/``: profiles, then topics."""
    exceptions_text: str | None
    """The environment's whole file of exceptions; None: nothing to add."""
    topics: tuple[str, ...]
    """Those that get a file."""
    profiles: tuple[str, ...]
    """Paths, as in ``files``."""
    exceptions: tuple[WrittenException, ...]
    """By topic and code."""
    left_out: tuple[LeftOut, ...]
    protected: tuple[str, ...]
    described: tuple[str, ...]
    unsayable: tuple[UnsayableOverride, ...]
    """Overrides of adopted topics that stay without a spec naming them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """All that is there: the files, valid ones, and the live side."""

    tree: Tree
    environment: Environment
    desired: Desired
    live: ClusterSnapshot
    exceptions_text: str | None
    """The environment's file of exceptions; None: there is none."""
    now: datetime


def import_topics(before: Before, wishes: ImportOptions, read: Read) -> ImportResult:
    """Specs for every live topic that a spec can say.

    Raises:
        SpecError: a file cannot be written as it would have to be.
        UsageError: exceptions cannot be added to the file that is there.
    """
    around = Surroundings(
        environment=before.environment,
        desired=before.desired,
        live=before.live,
        files_by_topic={d.stem: d.file for d in before.tree.documents if d.kind == "Topic"},
    )
    found = sort_topics(around, only=wishes.only)
    drafting = _Drafting(before, wishes, read)
    topics, left_out = {topic.name: topic for topic in found.adoptable}, list(found.left_out)
    while True:
        draft = drafting.draft(topics)
        problems = tuple(unlifted(drafting.tree_with(draft), before.environment.name, before.now))
        if drafting.takes_apart(draft, problems):
            continue
        refused = _hopeless(problems, topics) or drafting.not_at_rest(draft, problems, topics)
        if not refused:
            return _adoption(drafting, draft, topics, found, left_out, _exceptions_for(problems))
        left_out += refused
        gone = {each.topic for each in refused}
        topics = {name: topic for name, topic in topics.items() if name not in gone}


def _adoption(
    drafting: _Drafting,
    draft: _Draft,
    topics: Mapping[str, LiveTopic],
    found: Sorted,
    left_out: Iterable[LeftOut],
    exceptions: tuple[WrittenException, ...],
) -> ImportResult:
    return ImportResult(
        files=draft.texts,
        exceptions_text=drafting.exceptions_text(exceptions) if exceptions else None,
        topics=tuple(topics),
        profiles=tuple(sorted(draft.profiles)),
        exceptions=exceptions,
        left_out=tuple(sorted(left_out, key=lambda each: each.topic)),
        protected=found.protected,
        described=found.described,
        unsayable=tuple(trouble for topic in topics.values() for trouble in unsayable_overrides(topic)),
    )


def _hopeless(problems: Iterable[Finding], topics: Container[str]) -> list[LeftOut]:
    """New topics with a problem that no exception lifts."""
    found = {p.topic: p for p in problems if p.topic is not None and p.topic in topics and not is_liftable(p.code)}
    return [LeftOut(topic=name, code=problem.code, reason=problem.summary) for name, problem in found.items()]


def _exceptions_for(problems: Iterable[Finding]) -> tuple[WrittenException, ...]:
    """One for each topic and code, the topics that clash with a new one included."""
    summaries = {(p.topic, p.code): p.summary for p in problems if p.topic is not None and is_liftable(p.code)}
    return tuple(
        WrittenException(topic=topic, code=code, reason=f"Imported as it is: {summary}.")
        for (topic, code), summary in sorted(summaries.items())
    )


class _Draft(NamedTuple):
    """Files as they might be."""

    topics: Mapping[str, Document]
    """By path below ``topics/``, as are the others."""
    profiles: Mapping[str, Document]
    texts: Mapping[str, str]


class _Drafting:
    """One adoption: drafts are made and judged until one holds."""

    def __init__(self, before: Before, wishes: ImportOptions, read: Read) -> None:
        self.before, self.wishes, self.read = before, wishes, read
        world = view_of(before.tree, before.environment.name, before.now)
        self.shared = shared_profiles(world)
        self.taken = tuple(world.profiles)
        self.environments = [d.stem for d in before.tree.documents if d.kind == "Environment"]
        self.own_configs: frozenset[str] = frozenset()
        """Configs that no profile may hold, since an exception is for one topic."""

    def draft(self, topics: Mapping[str, LiveTopic]) -> _Draft:
        wanted = {name: _values_of(topic) for name, topic in topics.items()}
        profiles = new_profiles(wanted, self.shared, own_configs=self.own_configs, taken=self.taken)
        shared = self.shared.with_profiles(profiles)
        choices = shared.best_of_each(wanted)
        used = {name for name, _ in choices.values()}
        profile_texts = {f"profiles/{n}.yaml": profile_text(n, p) for n, p in sorted(profiles.items()) if n in used}
        topic_texts = {f"{self._folder(n)}/{n}.yaml": self._topic_text(n, *choice) for n, choice in choices.items()}
        return _Draft(
            topics={path: self.read(path, text) for path, text in topic_texts.items()},
            profiles={path: self.read(path, text) for path, text in profile_texts.items()},
            texts={**profile_texts, **topic_texts},
        )

    def takes_apart(self, draft: _Draft, problems: Iterable[Finding]) -> bool:
        """Keep configs out of profiles that are refused there; whether there are more than before."""
        elsewhere = (name for name in self.environments if name != self.before.environment.name)
        tree = self.tree_with(draft)
        found = (*problems, *(f for name in elsewhere for f in unlifted(tree, name, self.before.now)))
        files = {document.file: document for document in draft.profiles.values()}
        bad = {key for f in found if f.topic is None and f.file in files for key in _keys_at(files[f.file], f.span)}
        if bad <= self.own_configs:
            return False
        self.own_configs |= bad
        return True

    def not_at_rest(self, draft: _Draft, problems: Iterable[Finding], topics: Mapping[str, LiveTopic]) -> list[LeftOut]:
        """New topics for which a plan would have something to do, or to block."""
        before, exceptions = self.before, _exceptions_for(problems)
        path = exceptions_file(before.environment.name)
        more = (self.read(path, self.exceptions_text(exceptions)),) if exceptions else ()
        after = validate(self.tree_with(draft, *more), environment=before.environment.name, now=before.now)
        environment, desired = after.require()
        delta = diff(map(desired_row, desired.topics.values()), map(live_row, before.live.topics.values()))
        change_set = plan(desired, before.live, delta, environment, now=before.now)
        moved = {change.topic: ("", f"its spec would {change.action} it") for change in change_set.changes}
        moved |= {blocked.topic: (blocked.codes[0], blocked.reasons[0]) for blocked in change_set.blocked}
        return [LeftOut(topic=name, code=moved[name][0], reason=moved[name][1]) for name in topics if name in moved]

    def exceptions_text(self, exceptions: Sequence[WrittenException]) -> str:
        return with_exceptions(self.before.exceptions_text, exceptions, self.before.environment.name, self.read)

    def tree_with(self, draft: _Draft, *more: Document) -> Tree:
        """The files that are there and the new ones; a new one replaces what has its place."""
        every = (*self.before.tree.documents, *draft.profiles.values(), *draft.topics.values(), *more)
        documents = sorted({document.file: document for document in every}.values(), key=lambda each: each.file)
        return Tree(documents=tuple(documents), files=len(documents))

    def _folder(self, topic: str) -> str:
        if self.wishes.domain is not None:
            return self.wishes.domain
        return domain_of(topic)

    def _topic_text(self, topic: str, profile: str | None, own: SpecValues) -> str:
        metadata: dict[str, Content] = {"name": topic, "owner": self.wishes.owner}
        if len(self.environments) > 1:  # else the spec would create the topic in all the others
            metadata["environments"] = (self.before.environment.name,)
        spec: dict[str, Content] = {} if profile is None else {"profile": profile}
        return document_text("Topic", metadata, {"spec": {**spec, **own.content()}})


def _values_of(topic: LiveTopic) -> SpecValues:
    (replication_factor,) = topic.replication_factors
    return SpecValues(
        partitions=topic.partitions, replication_factor=replication_factor, configs=sayable_configs(topic)
    )


def _keys_at(profile: Document, span: Span) -> list[str]:
    """The configs of a profile that are written on the line of a problem."""
    configs = field_of(profile.root, "spec", "configs")
    entries = configs.entries if isinstance(configs, Fields) else ()
    return [key.text for key, _ in entries if key.span.line == span.line]

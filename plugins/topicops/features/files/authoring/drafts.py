"""Specs for live topics, such that the next plan has nothing to do for them, and the exceptions that they need.

Each draft is checked against all rules and planned before it is written. A topic gets no spec if the rules would
refuse it, or if the plan would change or block the topic.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from topicops.edges.specs.open_files import regular_text
from topicops.features.files.authoring.importable import (
    CodedReason,
    ImportInputs,
    InexpressibleOverride,
    LeftOut,
    NotConverted,
    expressible_configs,
    inexpressible_overrides,
    reason_to_leave_out,
)
from topicops.features.files.authoring.profiles import (
    Choice,
    Layers,
    Values,
    above,
    content_of,
    layers_of,
    named_profiles,
    new_profiles,
    values_of,
)
from topicops.features.files.authoring.specs import domain_of
from topicops.features.shared.writer import document_of, tree_with
from topicops.features.shared.yaml_blocks import field_of, last_line, plain_value
from topicops.features.shared.yaml_edits import with_field
from topicops.features.shared.yaml_text import Content, config_content, document_text, text_of
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.codes import Code
from topicops.model.errors import UsageError
from topicops.model.json_types import FormatVersion
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.specs.document import Document, Fields, Items, Node, Span, Tree
from topicops.steps.planning.diff import diff
from topicops.steps.planning.plan import plan
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import NUMBERS
from topicops.steps.specs.validate import is_liftable, unlifted, validate, view_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What came of every live topic that matches ``only``."""

    format_version: FormatVersion = "1.0"
    imported: tuple[str, ...]
    """Topics that get a file."""
    files: tuple[str, ...]
    """New files by path below ``topics/``: profiles, then topics."""
    extended: tuple[str, ...] = ()
    """Files of other environments that have values of this one now."""
    exceptions: tuple[WrittenException, ...]
    """New exceptions, by topic and code."""
    left_out: tuple[LeftOut, ...]
    unsayable: tuple[InexpressibleOverride, ...]
    """Overrides of imported topics that stay live although no spec can name them."""
    protected: tuple[str, ...]
    described: tuple[str, ...]
    """Topics that a spec of this environment describes already."""
    not_converted: tuple[NotConverted, ...] = ()
    """What files of another tool say and topicops has no place for."""
    named_profiles: tuple[str, ...] = ()
    """New profiles that took the name of a set of another tool."""
    missing: tuple[str, ...] = ()
    """Topics of files that are for every environment, and that are not live: the next plan would create them."""


def draft_import(inputs: ImportInputs) -> tuple[dict[str, str], ImportResult]:
    """Draft specs for every live topic that a spec can describe.

    Returns the texts to write in order, by path below ``topics/``, and the result. The whole file of exceptions is the
    first text, if some are added.
    """
    described, protected, left_out, topics = list[str](), list[str](), list[LeftOut](), dict[str, LiveTopic]()
    builder = _DraftBuilder(inputs)
    for name, topic in sorted(inputs.live.topics.items()):
        if not name.startswith(inputs.prefix) or (inputs.only is not None and not fnmatchcase(name, inputs.only)):
            continue
        source = builder.sources.get(name)
        if name in inputs.desired.topics and not builder.differs(topic):
            described.append(name)
        elif inputs.environment.protecting_pattern(name):
            protected.append(name)
        elif reason := reason_to_leave_out(topic, inputs, source) or (source and builder.reason_not_to_extend(topic)):
            left_out.append(LeftOut(name, *reason))
        else:
            topics[name] = topic
    while True:
        draft = builder.draft(topics)
        findings = tuple(unlifted(builder.tree_with(draft), inputs.environment.name, inputs.now))
        if builder.excludes_more_configs(draft, findings):
            continue
        exceptions = _exceptions_for(findings)
        refused = _not_liftable(findings, topics, inputs.prefix) or builder.changed_by_plan(draft, exceptions, topics)
        if not refused:
            break
        left_out += refused
        for each in refused:
            del topics[each.topic]
    changed = {builder.exceptions_file: builder.exceptions_text(exceptions)} if exceptions else {}
    extended = {path for path, _ in builder.extended.values()}
    lacking = (name for name in builder.everywhere if name not in inputs.live.topics)
    return {**changed, **draft.texts}, ImportResult(
        imported=tuple(topics),
        files=tuple(path for path in draft.texts if path not in extended),
        named_profiles=draft.named_profiles,
        extended=tuple(path for path in draft.texts if path in extended),
        exceptions=exceptions,
        left_out=tuple(sorted(left_out, key=lambda each: each.topic)),
        unsayable=tuple(o for topic in topics.values() for o in inexpressible_overrides(topic, inputs.release)),
        protected=tuple(protected),
        described=tuple(described),
        missing=tuple(sorted(name for name in lacking if inputs.only is None or fnmatchcase(name, inputs.only))),
    )


def _not_liftable(findings: Iterable[Finding], topics: Container[str], prefix: str) -> list[LeftOut]:
    """Return new topics with a finding that no exception can lift."""
    found = {f"{prefix}{p.topic}": p for p in findings if p.topic is not None and not is_liftable(p.code)}
    return [LeftOut(name, problem.code, problem.summary) for name, problem in found.items() if name in topics]


def _exceptions_for(findings: Iterable[Finding]) -> tuple[WrittenException, ...]:
    """Return one for each topic and code; existing topics that clash with a new one are included."""
    summaries = {(p.topic, p.code): p.summary for p in findings if p.topic is not None and is_liftable(p.code)}
    return tuple(WrittenException(*of, f"Imported as it is: {text}.") for of, text in sorted(summaries.items()))


class _Draft(NamedTuple):
    """Files that may still be rejected, by path below ``topics/``: profiles, then topics."""

    texts: Mapping[str, str]
    documents: tuple[Document, ...]
    named_profiles: tuple[str, ...]


class _DraftBuilder:
    """Makes and checks the drafts of one import, until one needs no change."""

    def __init__(self, inputs: ImportInputs) -> None:
        self.inputs = inputs
        self.view = view = view_of(inputs.tree, inputs.environment.name, inputs.now)
        self.layers, self.taken = layers_of(view), tuple(view.profiles)
        self.environments = [d.stem for d in inputs.tree.documents if d.kind == "Environment"]
        self.sources = {inputs.prefix + topic.label: topic for topic in view.topics}
        """The files by the names that their topics have here."""
        self.everywhere = frozenset(
            name
            for name, source in self.sources.items()
            if len(self.environments) > 1 and source.environments is None and source.shall_exist
        )
        """Topics of files that are for every environment."""
        self.extended: dict[str, tuple[str, str]] = {}
        """By topic, the path and the new text of a file that has values of this environment now."""
        self.exceptions_file = exceptions_file(inputs.environment.name)
        self.own_configs: frozenset[str] = frozenset()
        """Configs that no profile may hold: an exception can lift their findings only for one topic."""

    def _wanted(self, topic: LiveTopic) -> Values:
        (factor,) = topic.replication_factors
        configs = expressible_configs(topic, self.inputs.release)
        if self.inputs.given_of(topic.name).assignment:
            return configs
        return {"partitions": topic.partitions, "replicationFactor": factor, **configs}

    def differs(self, topic: LiveTopic) -> bool:
        """Say whether a file of every environment, this one among others, has other values than the live topic."""
        if topic.name not in self.everywhere or len(topic.replication_factors) != 1:
            return False
        return bool(above(self._wanted(topic), values_of(self.view.merge(self.sources[topic.name]))))

    def reason_not_to_extend(self, topic: LiveTopic) -> CodedReason | None:
        """Write the environment, and each value that differs here, into the topic's file; None where that is done."""
        source, environment = self.sources[topic.name], self.inputs.environment.name
        path = "/".join(source.file.split("/")[-2:])
        text, root = regular_text(self.inputs.topics / path) or "", source.document.root
        fields: list[tuple[tuple[str, ...], Content]] = []
        if source.environments is not None:
            fields.append((("metadata", "environments"), (*source.environments, environment)))
        for name, value in above(self._wanted(topic), values_of(self.view.merge(source))).items():
            path_of = (name,) if name in NUMBERS else ("configs", name)
            written = config_content(name, value) if isinstance(value, str) else value
            fields.append((("spec", "overrides", environment, *path_of), written))
        try:
            for keys, content in fields:
                text = with_field(text, root, keys, content)
                root = document_of(self.inputs.topics, path, text).root
        except UsageError as error:
            return Code.DEFINED_TWICE, f"{source.file} describes it for other environments, and {error}"
        self.extended[topic.name] = path, text
        return None

    def draft(self, topics: Mapping[str, LiveTopic]) -> _Draft:
        prefix = self.inputs.prefix
        wanted = {n.removeprefix(prefix): self._wanted(topic) for n, topic in topics.items() if n not in self.extended}
        named, chosen = named_profiles({n: self.inputs.given_of(prefix + n).profile for n in wanted}, self.layers)
        free = {name: values for name, values in wanted.items() if name not in chosen}
        taken = (*self.taken, *named)
        profiles = {**named, **new_profiles(free, self.layers, own_configs=self.own_configs, taken=taken)}
        layers = Layers(self.layers.defaults, {**self.layers.profiles, **profiles})
        choices = {**layers.best_of_each(free), **{n: layers.above(by, wanted[n]) for n, by in chosen.items()}}
        used = {name for name, _ in choices.values()}
        texts = {
            f"profiles/{name}.yaml": document_text("Profile", {"name": name}, {"spec": content_of(profile)})
            for name, profile in sorted(profiles.items())
            if name in used
        }
        for name, choice in choices.items():
            texts[f"{self.inputs.domain or domain_of(name)}/{name}.yaml"] = self._topic_text(name, choice)
        texts |= dict(self.extended[name] for name in topics if name in self.extended)
        documents = tuple(document_of(self.inputs.topics, path, text) for path, text in texts.items())
        return _Draft(texts, documents, tuple(sorted(named)))

    def _topic_text(self, topic: str, choice: Choice) -> str:
        name = self.inputs.prefix + topic
        given = self.inputs.given_of(name)
        metadata: dict[str, Content] = {"name": topic, "owner": self.inputs.owner_of(name) or ""}
        metadata |= {"description": given.description} if given.description else {}
        metadata |= {"labels": dict(given.labels)} if given.labels else {}
        if len(self.environments) > 1:  # without it, the spec would create the topic in every environment
            metadata["environments"] = (self.inputs.environment.name,)
        profile, own = choice
        spec: dict[str, Content] = {} if profile is None else {"profile": profile}
        if given.assignment:
            spec["assignment"] = given.assignment
            own = {name: value for name, value in own.items() if name not in NUMBERS}
        return document_text("Topic", metadata, {"spec": {**spec, **content_of(own)}})

    def excludes_more_configs(self, draft: _Draft, findings: Iterable[Finding]) -> bool:
        """Keep configs out of profiles where the rules refuse them; True if that changes the next draft."""
        tree, here = self.tree_with(draft), self.inputs.environment.name
        elsewhere = (f for name in self.environments if name != here for f in unlifted(tree, name, self.inputs.now))
        profiles = {document.file: document for document in draft.documents if document.kind == "Profile"}
        bad = {
            config
            for f in (*findings, *elsewhere)
            if f.topic is None and f.file in profiles
            for config in _configs_at(profiles[f.file], f.span)
        }
        is_more = not bad <= self.own_configs
        self.own_configs |= bad
        return is_more

    def changed_by_plan(
        self, draft: _Draft, exceptions: Sequence[WrittenException], topics: Container[str]
    ) -> list[LeftOut]:
        """Return new topics that a plan would change or block."""
        inputs, file = self.inputs, self.exceptions_file
        more = (document_of(inputs.topics, file, self.exceptions_text(exceptions)),) if exceptions else ()
        after = validate(self.tree_with(draft, *more), environment=inputs.environment.name, now=inputs.now)
        environment, desired = after.require()
        delta = diff(map(desired_row, desired.topics.values()), map(live_row, inputs.live.topics.values()))
        change_set = plan(desired, inputs.live, delta, environment, now=inputs.now)
        moved: dict[str, CodedReason] = {
            change.topic: (None, f"its spec would {change.action} it") for change in change_set.changes
        }
        moved |= {blocked.topic: (blocked.codes[0], blocked.reasons[0]) for blocked in change_set.blocked}
        return [LeftOut(name, *reason) for name, reason in sorted(moved.items()) if name in topics]

    def exceptions_text(self, more: Sequence[WrittenException]) -> str:
        """Return the text with ``more`` after its last entry. Raises ``UsageError`` where entries are no block list."""
        text, added = self.inputs.exceptions_text, [asdict(exception) for exception in more]
        if text is None:
            metadata = {"name": self.inputs.environment.name}
            return document_text("Exceptions", metadata, {"spec": {"exceptions": tuple(added)}})
        before = document_of(self.inputs.topics, self.exceptions_file, text)
        entries = _entries(before)
        edited = _behind(text, entries[-1], added) if entries else text
        after = document_of(self.inputs.topics, self.exceptions_file, edited)
        if [*map(plain_value, _entries(after))] != [*map(plain_value, entries), *added]:
            raise UsageError(
                f"{before.file}: exceptions cannot be put behind those that are there; write them as a list, one "
                "`- topic:` a line, or delete the file if it has none"
            )
        return edited

    def tree_with(self, draft: _Draft, *more: Document) -> Tree:
        return tree_with(self.inputs.tree, *draft.documents, *more)


def _configs_at(profile: Document, span: Span) -> list[str]:
    """Return the configs of a profile that stand on the line of a finding."""
    configs = field_of(profile.root, "spec", "configs")
    entries = configs.entries if isinstance(configs, Fields) else ()
    return [key.text for key, _ in entries if key.span.line == span.line]


@dataclass(frozen=True, slots=True)
class WrittenException:
    """One entry."""

    topic: str
    code: Code
    reason: str


def exceptions_file(environment: str) -> str:
    """Return the path of the file, below ``topics/``."""
    return f"environments/{environment}.exceptions.yaml"


def _behind(text: str, last: Node, added: Sequence[dict[str, str]]) -> str:
    """Return the text with the new entries below the last one, with the same indentation."""
    lines, depth = text.split("\n"), max(last.span.column - 3, 0)
    row = last_line(last, lines, below=depth, line=last.span.line)
    new = [
        f"{' ' * depth}{'  ' if number else '- '}{line}"
        for fields in added
        for number, line in enumerate(text_of(fields).splitlines())
    ]
    return "\n".join([*lines[:row], *new, *(lines[row:] or [""])])


def _entries(document: Document) -> tuple[Node, ...]:
    node = field_of(document.root, "spec", "exceptions")
    return node.items if isinstance(node, Items) else ()

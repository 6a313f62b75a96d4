"""Every field of the files that holds the name of something: a typing error in it is found, at its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, LOCAL, PROD, owners, topic, validated
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.environment import Written
from topicops.model.specs.files import EntriesKind, Kind, ListKind, ModelKind, PlainKind, TextKind, fields_of
from topicops.steps.specs.validate import MODELS

ID = "A" * 22
LOCAL_FILE = "environments/local.yaml"
OWNERS = owners("owner: team-web, environments: [local]")
RULE = "{id: small, level: topic, holds: partitions < 9, title: It is small}"
OVERRIDE = f"  overrides: {{a: {{partitions: 3}}}}\n  quality: {{rules: [{RULE}]}}\n"
EXCEPTION = "exceptions: [{topic: a, code: TOP320, reason: r}]"
EXCEPTIONS = HEAD.format(kind="Exceptions", name="local") + f"  {EXCEPTION}\n"
RIGHT: Mapping[str, str] = {
    **PROD,
    "web/a.yaml": topic(
        "a",
        "spec: {profile: p, configs: {retention.ms: 7d}, overrides: {local: {configs: {segment.ms: 1h}}}}\n",
        metadata=", environments: [local, prod]",
    ),
    "web/old.yaml": topic("old", f"lifecycle: {{state: absent, reason: r, topicIds: {{local: {ID}}}}}\n"),
    "profiles/p.yaml": HEAD.format(kind="Profile", name="p") + "  configs: {segment.ms: 1h}\n",
    "owners.yaml": OWNERS,
    "environments/local.exceptions.yaml": EXCEPTIONS,
    "environments/local.yaml": (
        f"{LOCAL}{OVERRIDE}  policy: {{after: [prod], alterableConfigs: [retention.ms, segment.ms], {EXCEPTION},\n"
        "    rules: [{match: {owners: [team-web]}, configs: {segment.ms: {max: 7d, min: 1s, oneOf: [1h]}}}]}\n"
    ),
}
FIELDS: Mapping[str, tuple[str, str, str, str]] = {
    "topic metadata.name": ("web/a.yaml", "name: a,", "name: aa,", "TOP117"),
    "topic metadata.owner": ("web/a.yaml", "owner: team-web", "owner: team-wep", "TOP331"),
    "topic metadata.environments[]": ("web/a.yaml", "prod]", "prdo]", "TOP336"),
    "topic spec.profile": ("web/a.yaml", "profile: p", "profile: q", "TOP318"),
    "topic spec.configs.*": ("web/a.yaml", "retention.ms", "retention.msec", "TOP305"),
    "topic spec.overrides.*": ("web/a.yaml", "overrides: {local", "overrides: {locla", "TOP336"),
    "topic spec.overrides.*.configs.*": ("web/a.yaml", "segment.ms", "segment", "TOP305"),
    "topic lifecycle.topicIds.*": ("web/old.yaml", "{local:", "{locla:", "TOP336"),
    "profile metadata.name": ("profiles/p.yaml", "name: p", "name: pp", "TOP117"),
    "profile spec.configs.*": ("profiles/p.yaml", "segment.ms", "segment.millis", "TOP305"),
    "owners metadata.name": ("owners.yaml", "name: owners", "name: owner", "TOP117"),
    "owners spec.owners[].environments[]": ("owners.yaml", "[local]", "[locla, local]", "TOP336"),
    "exceptions metadata.name": ("environments/local.exceptions.yaml", "name: local", "name: prod", "TOP117"),
    "exceptions spec.exceptions[].topic": ("environments/local.exceptions.yaml", "topic: a", "topic: aa", "TOP337"),
    "exceptions spec.exceptions[].code": ("environments/local.exceptions.yaml", "TOP320", "TOP32", "TOP205"),
    "environment metadata.name": ("environments/local.yaml", "name: local", "name: locla", "TOP117"),
    "environment spec.defaults.configs.*": (
        "environments/local.yaml", "replicationFactor: 3}", "replicationFactor: 3, configs: {retention: 7d}}", "TOP305"
    ),
    "environment spec.overrides.*": ("environments/local.yaml", "{a: {partitions", "{aa: {partitions", "TOP319"),
    "environment spec.overrides.*.configs.*": (
        "environments/local.yaml", "{a: {partitions: 3", "{a: {configs: {retention: 7d}", "TOP305"
    ),
    "environment spec.quality.rules[].holds": (LOCAL_FILE, "holds: partitions", "holds: partitons", "TOP205"),
    "environment spec.policy.after[]": ("environments/local.yaml", "after: [prod]", "after: [prdo]", "TOP333"),
    "environment spec.policy.alterableConfigs[]": (
        "environments/local.yaml", "[retention.ms,", "[retention.ms, retention,", "TOP305"
    ),
    "environment spec.policy.rules[].match.owners[]": (
        LOCAL_FILE, "{owners: [team-web", "{owners: [team-wep", "TOP205"
    ),
    "environment spec.policy.rules[].configs.*": (LOCAL_FILE, "{segment.ms: {max", "{segment: {max", "TOP305"),
    "environment spec.policy.rules[].configs.*.max": (LOCAL_FILE, "max: 7d", "max: 7 days", "TOP214"),
    "environment spec.policy.rules[].configs.*.min": (LOCAL_FILE, "min: 1s", "min: 1x", "TOP214"),
    "environment spec.policy.rules[].configs.*.oneOf[]": (LOCAL_FILE, "oneOf: [1h", "oneOf: [1x", "TOP214"),
    "environment spec.policy.exceptions[].topic": ("environments/local.yaml", "{topic: a", "{topic: aa", "TOP337"),
    "environment spec.policy.exceptions[].code": ("environments/local.yaml", "code: TOP320", "code: TOP32", "TOP205"),
}  # fmt: skip
"""Field: its file, what stands there, the typing error in its place, and the code that is said."""
PATTERNS = {
    "environment spec.policy.allowedOwners[]", "environment spec.policy.namePattern",
    "environment spec.policy.protectedTopics[]", "environment spec.policy.rules[].match.names",
    "owners spec.owners[].topics[]",
}  # fmt: skip
"""They fit names that may come later."""
OF_OTHER_SYSTEMS = {
    "environment spec.cluster.id": "the brokers and ZooKeeper are asked before each run (TOP502)",
    "environment spec.cluster.kafka.applier": "a connection; opening it names those that are known",
    "environment spec.cluster.kafka.connection": "a connection",
    "environment spec.cluster.kafka.deleter": "a connection",
    "environment spec.cluster.kafka.mover": "a connection",
    "environment spec.cluster.zookeeper.connection": "a connection",
    "environment spec.policy.approvers[]": "users of Airflow; who is none of them approves nothing",
    "owners spec.owners[].reviewers[]": "logins and teams of the forge; a team that cannot be read is named",
    "topic lifecycle.topicIds.*=": "an id; the form is checked here, and the plan compares it",
}
"""Names of things that no file describes, and who checks them."""
FREE = {
    "environment spec.airflow.driftSchedule", "environment spec.airflow.owner", "environment spec.airflow.ownerLink",
    "environment spec.airflow.schedule",
    "environment spec.cluster.kafka.bootstrapServers", "environment spec.cluster.kafkaVersion",
    "environment spec.cluster.zookeeper.hosts",
    "environment spec.policy.exceptions[].reason",
    "environment spec.quality.rules[].id", "environment spec.quality.rules[].runbook",
    "environment spec.quality.rules[].title",
    "environment spec.policy.requiredLabels[]", "exceptions spec.exceptions[].reason", "owners spec.owners[].owner",
    "topic lifecycle.reason", "topic metadata.description", "topic metadata.labels.*",
    "environment spec.cluster.topics.prefix",
    "topic metadata.labels.*=", "topic spec.assignment", "topic spec.overrides.*.assignment",
}  # fmt: skip
"""No names of something else."""


def test_every_text_of_the_files_is_a_checked_name_or_known_to_be_none() -> None:
    found = {f"{kind.lower()} {path}" for kind, model in MODELS.items() for path in texts_of(model)}
    assert found == FIELDS.keys() | PATTERNS | OF_OTHER_SYSTEMS.keys() | FREE


def test_the_files_are_right_as_they_stand(tmp_path: Path) -> None:
    assert (
        validated(tmp_path, {k: v for k, v in RIGHT.items() if k != LOCAL_FILE}, local=RIGHT[LOCAL_FILE]).diagnostics
        == ()
    )


@pytest.mark.parametrize("field", FIELDS)
def test_a_typing_error_in_a_name_is_found(tmp_path: Path, field: str) -> None:
    file, right, wrong, code = FIELDS[field]
    assert right in RIGHT[file]
    files = {**RIGHT, file: RIGHT[file].replace(right, wrong, 1)}
    found = said_of(tmp_path, files)
    said = [d for d in found if d.code == code and d.file.endswith(file)]
    assert [d.is_error for d in said] == [True], found


def said_of(folder: Path, files: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    others = {name: text for name, text in files.items() if name != LOCAL_FILE}
    return validated(folder, others, local=files[LOCAL_FILE]).diagnostics


def texts_of(model: type[Written], path: str = "") -> Iterator[str]:
    """Yield the path of each field that takes any text; ``*`` is a key, and ``*=`` the text under a key."""
    for name, field in fields_of(model).items():
        if path or name not in ("apiVersion", "kind"):
            yield from texts_of_kind(field.kind, f"{path}.{name}".removeprefix("."))


def texts_of_kind(kind: Kind, path: str) -> Iterator[str]:
    match kind:
        case TextKind() | PlainKind.AS_WRITTEN:
            yield path
        case ListKind():
            yield from texts_of_kind(kind.item, f"{path}[]")
        case EntriesKind():
            yield f"{path}.*"
            yield from texts_of_kind(kind.value, f"{path}.*=" if isinstance(kind.value, TextKind) else f"{path}.*")
        case PlainKind.CONFIGS:
            yield f"{path}.*"
        case ModelKind():
            yield from texts_of(kind.model, path)

"""The formats of other tools that an import reads: one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from topicops.features.files.authoring.takeover.formats import (
    ansible,
    create_topics,
    describe,
    helmsman,
    jikkou,
    jsonl,
    julie,
    kafka_gitops,
    strimzi,
    terraform,
    topicctl,
)
from topicops.features.files.authoring.takeover.found import Reader


class Format(NamedTuple):
    """Which files of a folder have it, by their last letters, and what reads them."""

    suffixes: tuple[str, ...]
    read: Reader


_YAML = (".yaml", ".yml")
FORMATS: Mapping[str, Format] = {
    "terraform": Format((".tf", ".json"), terraform.read),
    "strimzi": Format((*_YAML, ".json"), strimzi.read),
    "jikkou": Format(_YAML, jikkou.read),
    "topicctl": Format(_YAML, topicctl.read),
    "julie": Format(_YAML, julie.read),
    "kafka-gitops": Format(_YAML, kafka_gitops.read),
    "jsonl": Format((".jsonl",), jsonl.read),
    "ansible": Format(_YAML, ansible.read),
    "helmsman": Format(_YAML, helmsman.read),
    "create-topics": Format((*_YAML, ".txt", ".env"), create_topics.read),
    "describe": Format((".txt",), describe.read),
}

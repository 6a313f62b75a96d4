"""``KAFKA_CREATE_TOPICS`` of a compose file, or lines: ``name:partitions:replicas``, then a policy or ``--config``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topicops.features.files.authoring.importable import NotConverted
from topicops.features.files.takeover.edges.texts import SourceFile, Value
from topicops.features.files.takeover.found import Found, NoTopic, SourceTopic

_VARIABLE = re.compile(r"""^\s*-?\s*["']?KAFKA_CREATE_TOPICS["']?\s*[:=]\s*["']?([^"'\n]*)["']?""", re.MULTILINE)
_CONFIG = re.compile(r"--config[= ]([^=\s]+)=(\S+)")
_LEAST = 3


def read(files: Sequence[SourceFile], _cluster: str | None) -> Iterator[Found]:
    """Yield the topics of each variable; of a file without one, of its lines."""
    for file in files:
        found = [(file.text.count("\n", 0, m.start(1)) + 1, m[1]) for m in _VARIABLE.finditer(file.text)]
        is_list = file.name.endswith((".txt", ".env"))
        for line, text in found or (enumerate(file.text.splitlines(), 1) if is_list else ()):
            for entry in text.split(","):
                if entry.strip() and not entry.strip().startswith("#"):
                    yield from _topic(entry.strip(), file.name, line)


def _topic(entry: str, file: str, line: int) -> Iterator[Found]:
    name, *fields = entry.split(":", _LEAST)
    if "${" in entry or "<" in entry or len(fields) < _LEAST - 1:
        yield NoTopic(name, None, f"{entry!r} is not written as name:partitions:replicas", file, line)
        return
    more = fields[_LEAST - 1] if len(fields) == _LEAST else ""
    configs: dict[str, Value] = {match[1]: match[2] for match in _CONFIG.finditer(more)}
    policy = _CONFIG.sub("", more).strip()
    if policy and policy.replace(",", "").isalpha():
        configs["cleanup.policy"] = policy
    elif policy:
        yield NotConverted(name, policy, file, line)
    yield SourceTopic(name=name, file=file, line=line, partitions=fields[0], factor=fields[1], configs=configs)

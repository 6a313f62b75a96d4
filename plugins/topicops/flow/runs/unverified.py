"""Topics to which something was sent, and which nobody has verified yet: a run may end between the two."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from topicops.edges.home.memories import UNVERIFIED, MemoryFile
from topicops.flow.runs.run import Run


def note_unverified(run: Run, topics: Collection[str]) -> None:
    """Before anything is sent. Raises ``ArtifactError``; then nothing may be sent."""
    memory = _memory(run)
    memory.write({**dict.fromkeys(topics, run.name), **(memory.read() or {})})


def note_not_sent(run: Run, topics: Collection[str]) -> None:
    """Nothing was sent to these after all; what an earlier run left stays."""
    note_verified_topics(run, set(topics) & {*unverified_of(run)})


def note_verified_topics(run: Run, topics: Collection[str]) -> None:
    """After each of these was looked at, whatever was found."""
    memory = _memory(run)
    before = memory.read() or {}
    if not before:
        return
    if left := {topic: by for topic, by in before.items() if topic not in topics}:
        memory.write(left)
    else:
        memory.remove()


def unverified(run: Run) -> Mapping[str, str]:
    """Of earlier runs: the run by topic. Raises ``ArtifactError``."""
    found = _memory(run).read() or {}
    return {topic: by for topic, by in found.items() if by != run.name}


def unverified_of(run: Run) -> Collection[str]:
    """Topics of this run, and of no earlier one."""
    return [topic for topic, by in (_memory(run).read() or {}).items() if by == run.name]


def _memory(run: Run) -> MemoryFile[dict[str, str]]:
    return UNVERIFIED.of(run.home, run.environment)

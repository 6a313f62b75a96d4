"""Which field, word or config was probably intended: the text behind "did you mean"."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from topicops.model.specs.files import TopicMetadata, TopicSpec, WrittenLifecycle, fields_of
from topicops.model.specs.topic_config import TOPIC_CONFIGS

_WORDS_OF_OTHERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("replicas", "replication", "rf"), ("replicationFactor",)),
    **dict.fromkeys(("config", "configuration", "settings", "properties", "params", "parameters"), ("configs",)),
    **dict.fromkeys(("topicconfig", "topicconfigs"), ("configs",)),
    **dict.fromkeys(("topic", "topicname"), ("name", "metadata")),
    **dict.fromkeys(("env", "clusters"), ("environments",)),
    **dict.fromkeys(("tags", "annotations"), ("labels",)),
    "partition": ("partitions",),
    "replicaassignment": ("assignment",),
    "strategy": ("placement",),
    "team": ("owner",),
    "doc": ("description",),
    "version": ("apiVersion",),
}
"""Names of our fields in other tools: without dots, dashes and underscores, in lower case."""
_CONFIGS_BY_BARE_NAME: Mapping[str, str] = {name.replace(".", ""): name for name in TOPIC_CONFIGS}

_BLOCK_OF_FIELD: Mapping[str, str] = {
    **dict.fromkeys(fields_of(TopicMetadata), "metadata"),
    **dict.fromkeys(fields_of(TopicSpec), "spec"),
    **dict.fromkeys(fields_of(WrittenLifecycle), "lifecycle"),
    **dict.fromkeys(("spec", "lifecycle"), "the top of the file"),
}


def hint_for_field(key: str, fields: Sequence[str]) -> str:
    """Return what to do about a field that is not one of ``fields``."""
    for guess in _similar_fields(key, fields):
        return f"did you mean {guess}?"
    if key in TOPIC_CONFIGS:
        return f"a topic's config goes below configs, as configs: {{{key}: …}}"
    if key in _BLOCK_OF_FIELD:
        return f"it belongs to {_BLOCK_OF_FIELD[key]}"
    config = _CONFIGS_BY_BARE_NAME.get(_bare(key))
    if config is not None:
        return f"a topic's config goes below configs, as {config}"
    for name in (name for name in _WORDS_OF_OTHERS.get(_bare(key), ()) if name in _BLOCK_OF_FIELD):
        return f"it belongs to {_BLOCK_OF_FIELD[name]}, as {name}"
    return f"known here: {', '.join(fields)}"


def _similar_fields(key: str, fields: Sequence[str]) -> Iterator[str]:
    """Yield those of ``fields`` that ``key`` may stand for, the likeliest first."""
    bare = _bare(key)
    yield from (name for name in _WORDS_OF_OTHERS.get(bare, ()) if name in fields)
    yield from (name for name in fields if name.lower() == bare)
    yield from filter(None, [similar_word(key, fields, cutoff=0.75)])


def meant(name: str, known: Collection[str], otherwise: str) -> str:
    """Return what to do about a name that is not one of ``known``; ``otherwise`` where none is like it."""
    same = next((word for word in known if folded_letters(word) == folded_letters(name)), None)
    if same is not None:
        return f"write {same}: these are the same letters, in another case or stored in another way"
    close = similar_word(name, known)
    return f"did you mean {close}?" if close else otherwise


def folded_letters(name: str) -> str:
    """Return the name as file systems that fold case and composed letters have it."""
    return unicodedata.normalize("NFC", name).casefold()


def similar_word(text: str, words: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the one of ``words`` that is most like ``text``; None if none is like it."""
    return _similar_word(text, tuple(words), cutoff)


@lru_cache(maxsize=4096)  # many files share one wrong name
def _similar_word(text: str, words: tuple[str, ...], cutoff: float) -> str | None:
    return next(iter(difflib.get_close_matches(text, words, n=1, cutoff=cutoff)), None)


def _bare(key: str) -> str:
    return re.sub(r"[._-]", "", key).lower()

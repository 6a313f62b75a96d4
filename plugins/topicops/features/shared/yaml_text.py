"""Spec files as text: block style; plain text where every YAML reader reads it as text, else double quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from topicops.model.specs.desired import API_VERSION
from topicops.model.specs.spellings import human_unit
from topicops.model.specs.topic_config import SMALLEST_UNITS, UNITS, config_of

Scalar = str | int | float | bool | None


class Written(str):
    """A plain text that stays as it was written: ``6``, ``7d``, ``true``."""

    __slots__ = ()


Content = Scalar | tuple["Content", ...] | Mapping[str, "Content"]
"""Content of a field; a ``str`` is written so that it is read back as text."""

_STEP = "  "
_PLAIN = re.compile(r"[^\W\d][^\n]*|/[^\n]*")
"""Starts with a letter, an underscore or a slash, so it is neither a number nor YAML syntax."""
_BREAKS_PLAIN = re.compile(r": |:$| #| $")
_BREAKS_PLAIN_INSIDE = re.compile(r"[\[\]{},:?]| #| $")
"""PyYAML ends a plain text between brackets at any question mark (``scan_plain``); libyaml does not."""
MISREAD_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
"""Words that some YAML readers do not read as text. Source: YAML 1.1, types bool and null."""
_WITH_UNIT = re.compile(r"[1-9][0-9]*(?:ms|s|m|h|d|B|KiB|MiB|GiB|TiB)")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
"""A time is read as a time with quotes or without."""
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def document_text(kind: str, metadata: Mapping[str, Content], blocks: Mapping[str, Content]) -> str:
    """Return the text of a whole file; ``blocks`` come after the metadata."""
    return text_of({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **blocks})


def text_of(fields: Mapping[str, Content]) -> str:
    """Return the lines of a block mapping; each ends with a line feed."""
    return "".join(f"{line}\n" for line in _block(fields))


def scalar(text: str, *, inside: bool = False) -> str:
    """Return ``text`` as one YAML scalar on one line; ``inside`` means between brackets or braces."""
    breaks = _BREAKS_PLAIN_INSIDE if inside else _BREAKS_PLAIN
    is_word = _PLAIN.fullmatch(text) is not None and text.lower() not in MISREAD_WORDS
    is_plain = is_word or _WITH_UNIT.fullmatch(text) or (_TIME.fullmatch(text) and not inside)
    if text.isprintable() and is_plain and not breaks.search(text):
        return text
    return f'"{"".join(map(_escaped, text))}"'


def config_content(name: str, canonical: str) -> Scalar:
    """Return a config's value as people write it: ``7d``, ``1GiB``, a plain number, true or false, else text."""
    config = config_of(name)
    if config is None:
        return canonical
    if config.type == "BOOLEAN":
        return canonical == "true"
    if not config.is_whole_number:
        return float(canonical) if config.type == "DOUBLE" and canonical[-1:].isdigit() else canonical
    number = int(canonical)
    if number <= 0 or config.unit is None:
        return number
    # A small number has its unit too: `validate` warns of `retention.ms: 7`, which may have been meant as days.
    is_small = number < sorted(UNITS[config.unit].values())[1]
    return human_unit(config, canonical) or (f"{number}{SMALLEST_UNITS[config.unit]}" if is_small else number)


def _block(fields: Mapping[str, Content]) -> Iterator[str]:
    for name, content in fields.items():
        key = scalar(name)
        if isinstance(content, Mapping) and content:
            yield f"{key}:"
            yield from (f"{_STEP}{line}" for line in _block(content))
        elif isinstance(content, tuple) and any(isinstance(item, Mapping) for item in content):
            yield f"{key}:"
            yield from (f"{_STEP}{line}" for item in content for line in _item(item))
        else:
            yield f"{key}: {_inline(content)}"


def _item(item: Content) -> Iterator[str]:
    lines = list(_block(item)) if isinstance(item, Mapping) and item else [_inline(item)]
    yield f"- {lines[0]}"
    yield from (f"{_STEP}{line}" for line in lines[1:])


def _inline(content: Content, *, inside: bool = False) -> str:
    match content:
        case None:
            return "null"
        case bool():
            return str(content).lower()
        case int() | float() | Written():
            return str(content)
        case str():
            return scalar(content, inside=inside)
        case tuple():
            return f"[{', '.join(_inline(item, inside=True) for item in content)}]"
        case _:
            shown = (f"{scalar(name, inside=True)}: {_inline(below, inside=True)}" for name, below in content.items())
            return f"{{{', '.join(shown)}}}"


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"

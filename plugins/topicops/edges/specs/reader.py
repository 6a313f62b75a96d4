"""Reads ``topics/``: files opened with care, YAML from libyaml's events, never more than a nested list of texts.

libyaml's composer is not used: a deeply nested file can crash it. Anchors, tags, merge keys, directives and second
documents are refused, so that a diff in git is the diff in meaning.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from topicops.edges.specs.fast_path import read_simple
from topicops.edges.specs.repairs import blanks_for_tabs, without_invisible
from topicops.model.errors import UsageError
from topicops.model.gc_pause import gc_paused
from topicops.model.specs.diagnostics import Diagnostic, Fix, Note, Severity
from topicops.model.specs.document import START, Document, Entry, Fields, FileKind, Items, Node, Span, Text, Tree

Event = Any
"""An event of libyaml. The stubs have every mark optional; a parser's events have both, and speed counts here."""
Mark = Any

LARGEST_FILE = 64 * 1024
DEEPEST = 16
MOST_NODES = 2_000
ROOM_FOR_EXCEPTIONS = 16
"""A file of exceptions speaks of many topics, and may be so many times as large."""

LEGAL_STEM = re.compile(r"[A-Za-z0-9._-]+")
_IGNORED = re.compile(r"\..*|.*\.md", re.IGNORECASE)
"""Files that nobody takes for a spec; a dot file that ends in ``.yaml`` is one all the same."""

_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029"
    # Unicode's Default_Ignorable_Code_Point without the two selectors of emoji style, and its other format characters
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
FORBIDDEN = re.compile(f"\r(?!\n)|[{_HIDDEN}]")
"""Characters that hide, turn the direction of text, or end a line for some readers only."""
_SUSPECT = re.compile(f"[\r{_HIDDEN}]")
"""One class of characters, which is found an order of magnitude sooner."""
_HARMLESS = bytes((*b"\n", *range(0x20, 0x7F)))

_DIRECTIVE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?=%)")
_UTF_16_OR_32 = re.compile(rb"\xff\xfe|\xfe\xff|\x00.|.\x00", re.DOTALL)
"""A mark, or a zero byte among the first two. Source: YAML 1.2, section 5.2."""


def read_tree(topics: Path) -> Tree:
    """Every file below ``topics``, each with what it says or with the reason why it cannot be read.

    Raises:
        UsageError: there is no such folder.
    """
    require_folder(topics)
    with gc_paused():
        return tree_of([read_place(place) for place in walk(topics)])


def require_folder(topics: Path) -> None:
    """Raises ``UsageError`` unless there is such a folder."""
    if not topics.is_dir():
        raise UsageError(
            f"{topics}: no such folder; name the one that holds the topics, as in: topicops validate topics"
        )


def tree_of(read: Sequence[ReadPlace]) -> Tree:
    documents = sorted((document for document, _ in read if document is not None), key=lambda found: found.file)
    problems = tuple(problem for _, problem in read if problem is not None)
    return Tree(documents=tuple(documents), problems=problems, files=len(read))


def read_document(data: bytes, file: str, *, room: int = 1) -> Node:
    """What the bytes of one file say.

    Args:
        room: How many times as many nodes as in other files there may be.

    Raises:
        UnreadableError: with the one diagnostic that ends the file.
    """
    try:
        return nodes_of(data, room=room)
    except _FoundError as found:
        raise UnreadableError(_diagnostic(found, file)) from found


def nodes_of(data: bytes, *, room: int = 1) -> Node:
    """As ``read_document``, for a caller that names the file later: raises ``_FoundError``."""
    text = _decoded(data)
    if "\t" not in text and "\r" not in text:
        simple = read_simple(text, deepest=DEEPEST, most_nodes=MOST_NODES)
        if simple is not None:
            return simple
    return nodes_of_events(text, most_nodes=room * MOST_NODES)


def nodes_of_events(text: str, *, most_nodes: int = MOST_NODES) -> Node:
    """What libyaml's events say, whatever the file looks like; or ``_FoundError``."""
    return _Reading(text, most_nodes).document()


def source_line(file: Path, line: int) -> str:
    """One line of a file, for showing a problem in its place; empty where it cannot be read."""
    try:
        lines = open_regular(file).decode("utf-8", "replace").split("\n")
    except _FoundError:
        return ""
    return lines[line - 1].rstrip("\r") if line <= len(lines) else ""


def regular_text(file: Path, *, room: int = 1) -> str | None:
    """The whole of a file; None where it is not a regular, readable file of UTF-8 within ``room`` times the limit."""
    try:
        return open_regular(file, room=room).decode()
    except (_FoundError, UnicodeDecodeError):
        return None


class UnreadableError(Exception):
    """A file ended at its first problem."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(f"{diagnostic.file}:{diagnostic.line}: {diagnostic.summary}")


class _FoundError(Exception):
    """The first problem of a file, before its name is known."""

    def __init__(self, code: str, span: Span, summary: str, remedy: str = "") -> None:
        super().__init__(summary)
        self.code, self.span, self.summary, self.remedy = code, span, summary, remedy
        self.other: tuple[Span, str] | None = None
        """A second place of the file, and what stands there."""
        self.fix: Fix | None = None
        self.rename_to: str | None = None


def _diagnostic(found: _FoundError, file: str) -> Diagnostic:
    return Diagnostic(
        code=found.code,
        severity=Severity.ERROR,
        file=file,
        line=found.span.line,
        column=found.span.column,
        end_line=found.span.end_line,
        end_column=found.span.end_column,
        summary=found.summary,
        help=found.remedy,
        note=_note(found, file),
        fix=found.fix,
        rename_to=found.rename_to,
    )


def _note(found: _FoundError, file: str) -> Note | None:
    if found.other is None:
        return None
    span, text = found.other
    return Note(
        file=file, line=span.line, column=span.column, end_line=span.end_line, end_column=span.end_column, text=text
    )


# ---- which files, and what they are ----


class Place(NamedTuple):
    """Something below ``topics`` that is no folder of specs."""

    path: str
    """To open it."""
    file: str
    """Relative to the working folder, with ``/``."""
    folders: tuple[str, ...]
    """Those below ``topics`` that lead to it."""
    name: str
    looks_regular: bool
    """What its folder says of it."""


ReadPlace = tuple[Document | None, Diagnostic | None]
"""What it says, and what keeps it from being read."""


def walk(topics: Path) -> Iterator[Place]:
    """Everything below ``topics`` that is no folder, and folders that cannot be listed; links are not followed."""
    waiting = [(str(topics), shown_folder(topics), tuple[str, ...]())]
    while waiting:
        path, before, folders = waiting.pop()
        try:
            with os.scandir(path) as found:
                entries = list(found)
        except OSError:
            yield Place(path, before.rstrip("/") or ".", folders[:-1], folders[-1] if folders else "", False)
            continue
        for entry in entries:
            name = entry.name
            if name.endswith(".yaml"):
                yield Place(entry.path, before + name, folders, name, entry.is_file(follow_symlinks=False))
            elif entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, f"{before}{name}/", (*folders, name)))
            elif not _IGNORED.fullmatch(name):
                yield Place(entry.path, before + name, folders, name, False)


def shown_folder(topics: Path) -> str:
    """What the names of its files begin with: relative to the working folder, ``topics/`` or empty."""
    shown = os.path.relpath(topics).replace(os.sep, "/")
    return "" if shown == "." else f"{shown}/"


def read_file(place: Place) -> Node:
    room = room_of(place)
    return nodes_of(open_regular(place.path, room=room), room=room)


def room_of(place: Place) -> int:
    """How many times as large as others this file may be."""
    is_for_many = place.folders == ("environments",) and place.name.endswith(".exceptions.yaml")
    return ROOM_FOR_EXCEPTIONS if is_for_many else 1


def read_place(place: Place, read: Callable[[Place], Node] = read_file) -> ReadPlace:
    """``read`` is asked for the nodes of a file whose place is in order."""
    kind, stem = kind_and_stem(place)
    try:
        _check_place(place, kind, stem)
        root = read(place)
    except _FoundError as found:
        known = found.code not in ("TOP116", "TOP118")
        unread = Document(file=place.file, kind=kind, stem=stem, root=None) if known else None
        return unread, _diagnostic(found, place.file)
    return Document(file=place.file, kind=kind, stem=stem, root=root), None


def kind_and_stem(place: Place) -> tuple[FileKind, str]:
    stem = place.name.removesuffix(".yaml")
    match place.folders[0] if place.folders else "":
        case "profiles":
            return "Profile", stem
        case "environments" if stem.endswith(".exceptions"):
            return "Exceptions", stem.removesuffix(".exceptions")
        case "environments":
            return "Environment", stem
        case _:
            return "Topic", stem


def _check_place(place: Place, kind: FileKind, stem: str) -> None:
    name = place.name
    if not place.looks_regular and os.path.isdir(place.path):  # noqa: PTH112, since a path may be too long to ask
        is_link = os.path.islink(place.path)  # noqa: PTH114
        raise _not_regular("a link, and links are not followed" if is_link else "a folder that is no domain")
    if not name.endswith(".yaml"):
        found = _FoundError("TOP118", START, f"{name} does not end in .yaml", "rename it, or move it elsewhere")
        found.rename_to = _with_our_extension(place)
        raise found
    if len(place.folders) != 1:
        where = "/".join((*place.folders, name))
        raise _FoundError(
            "TOP116", START, f"{where} is not directly in a folder of its kind", "use <domain>/<topic name>.yaml"
        )
    if not LEGAL_STEM.fullmatch(stem) or (kind in ("Environment", "Exceptions") and "." in stem):
        raise _FoundError(
            "TOP116",
            START,
            "the file's name holds characters that no name may have",
            "only letters, digits, dot, underscore and dash; an environment has no dot",
        )


def _with_our_extension(place: Place) -> str | None:
    """The name that a ``.yml`` is to have, unless that is taken."""
    stem, extension = os.path.splitext(place.name)  # noqa: PTH122
    is_taken = os.path.lexists(f"{os.path.splitext(place.path)[0]}.yaml")  # noqa: PTH122
    return f"{stem}.yaml" if extension.lower() in (".yml", ".yaml") and not is_taken else None


_WITH_CARE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""A pipe or device opened this way neither blocks nor is read."""


def open_regular(path: str | Path, *, room: int = 1) -> bytes:
    """The bytes of a regular file of at most ``room`` times 64 KiB; no link is followed, no pipe waited for."""
    try:
        descriptor = os.open(path, _WITH_CARE)  # closed below
    except OSError as error:
        raise _cannot_open(error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _not_regular("not a regular file")
        return _all_of(descriptor, status.st_size, room * LARGEST_FILE)
    except OSError as error:
        raise _cannot_open(error) from error
    finally:
        os.close(descriptor)


def _all_of(descriptor: int, size: int, largest: int) -> bytes:
    data = os.read(descriptor, min(size, largest) + 1)
    if 0 < len(data) == size <= largest:
        return data
    while len(data) <= largest:
        part = os.read(descriptor, largest + 1 - len(data))
        if not part:
            return data
        data += part
    raise _FoundError("TOP103", START, f"more than {largest:,} bytes", "one topic a file; shorten the comments")


def _cannot_open(error: OSError) -> _FoundError:
    if error.errno == errno.ELOOP:
        return _not_regular("a link, and links are not followed")
    return _not_regular(f"cannot be read: {error.strerror}")


def _not_regular(why: str) -> _FoundError:
    return _FoundError("TOP115", START, why, "put a readable, regular file here")


# ---- from bytes to text ----


def _decoded(data: bytes) -> str:
    if not data.translate(None, _HARMLESS):
        return data.decode("ascii")
    if _UTF_16_OR_32.match(data):
        raise _FoundError("TOP119", START, "UTF-16 or UTF-32", "save the file as UTF-8")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        span = _place(before, len(before), width=1)
        raise _FoundError("TOP101", span, f"byte 0x{data[error.start]:02X} is not UTF-8", "save as UTF-8") from error
    found = FORBIDDEN.search(text) if _SUSPECT.search(text) else None
    if found:
        span, name = _place(text, found.start(), width=1), f"U+{ord(found[0]):04X}"
        hidden = _FoundError(
            "TOP102",
            span,
            f"the character {name} is hidden or ends a line for some readers only",
            "delete it, or write it as an escape in double quotes",
        )
        hidden.fix = without_invisible(text, found.start(), span)
        raise hidden
    return text


def _place(text: str, index: int, *, width: int) -> Span:
    line = text.count("\n", 0, index) + 1
    column = index - (text.rfind("\n", 0, index) + 1) + 1
    return Span(line, column, line, column + width)


# ---- from text to nodes ----

_NODE_MARKS = {"&": "an anchor", "*": "an alias", "!": "a tag"}


class _Reading:
    """One pass over the events of one file."""

    def __init__(self, text: str, most_nodes: int = MOST_NODES) -> None:
        self.text = text
        self.most_nodes = most_nodes
        self.nodes = 0
        self.has_tabs = "\t" in text

    def document(self) -> Node:
        self._refuse_directives()
        loader = yaml.CSafeLoader(self.text)
        try:
            return self._only_document(loader)
        except yaml.MarkedYAMLError as error:
            raise self._syntax(error) from error
        except yaml.YAMLError as error:
            raise _FoundError("TOP106", START, f"not YAML: {error}") from error
        finally:
            loader.dispose()

    def _only_document(self, loader: yaml.CSafeLoader) -> Node:
        loader.get_event()  # stream start
        start: Event = loader.get_event()
        if isinstance(start, yaml.StreamEndEvent):
            raise _empty()
        root = self._node(loader, loader.get_event(), depth=1)
        loader.get_event()  # document end
        behind = loader.get_event()
        if isinstance(behind, yaml.DocumentStartEvent):
            raise self._second_document(behind)
        if isinstance(root, Text) and root.is_null:
            raise _empty()
        return root

    def _node(self, loader: yaml.CSafeLoader, event: Event, *, depth: int) -> Node:
        mark = event.start_mark
        first = self.text[mark.index : mark.index + 1]
        if first in _NODE_MARKS and not (isinstance(event, yaml.ScalarEvent) and event.start_mark == event.end_mark):
            raise self._refused_mark(first, mark)
        self._count()
        if self.has_tabs:
            self._refuse_tab_before(mark)
        if isinstance(event, yaml.ScalarEvent):
            return Text(event.value, not event.style, _span(event))
        if depth > DEEPEST:
            raise _FoundError("TOP104", _span(event), f"nested deeper than {DEEPEST}", "no field needs that")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._items(loader, event, depth)
        return self._fields(loader, event, depth)

    def _items(self, loader: yaml.CSafeLoader, start: Event, depth: int) -> Items:
        items = []
        while not isinstance(event := loader.get_event(), yaml.SequenceEndEvent):
            items.append(self._node(loader, event, depth=depth + 1))
        return Items(tuple(items), _until(start, event))

    def _fields(self, loader: yaml.CSafeLoader, start: Event, depth: int) -> Fields:
        entries: list[Entry] = []
        seen: dict[str, Span] = {}
        while not isinstance(event := loader.get_event(), yaml.MappingEndEvent):
            key = self._key(self._node(loader, event, depth=depth + 1), seen)
            seen[key.text] = key.span
            entries.append((key, self._node(loader, loader.get_event(), depth=depth + 1)))
        return Fields(tuple(entries), _until(start, event))

    def _key(self, key: Node, seen: dict[str, Span]) -> Text:
        if not isinstance(key, Text) or key.is_null:
            raise _FoundError("TOP114", key.span, "this key is not plain text", "a key is the name of a field")
        if key.plain and key.text == "<<":
            raise _FoundError("TOP109", key.span, "merge keys are not read", "write the fields out, or use a profile")
        if key.text in seen:
            first = seen[key.text].line
            summary = f"{key.text} stands twice; the first is on line {first}"
            twice = _FoundError("TOP111", key.span, summary, "keep one")
            twice.other = (seen[key.text], "the first one")
            raise twice
        return key

    def _count(self) -> None:
        self.nodes += 1
        if self.nodes > self.most_nodes:
            raise _FoundError("TOP105", START, f"more than {self.most_nodes:,} values", "split the file")

    def _refused_mark(self, first: str, mark: Mark) -> _FoundError:
        code = "TOP110" if first == "!" else "TOP108"
        span = Span(mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)
        return _FoundError(code, span, f"{_NODE_MARKS[first]} is not read", "write the value out, or quote the text")

    def _refuse_tab_before(self, mark: Mark) -> None:
        indentation = self.text[mark.index - mark.column : mark.index]
        if "\t" in indentation and not indentation.strip(" \t"):
            raise self._tab(mark.index - mark.column + indentation.index("\t"))

    def _tab(self, index: int) -> _FoundError:
        found = _FoundError("TOP107", _place(self.text, index, width=1), "a tab is used as indentation", "use blanks")
        found.fix = blanks_for_tabs(self.text, _read_or_none)
        return found

    def _refuse_directives(self) -> None:
        found = _DIRECTIVE.match(self.text)
        if found:
            span = _place(self.text, found.end(), width=1)
            raise _FoundError("TOP110", span, "a directive is not read", "delete the line")

    def _second_document(self, start: Event) -> _FoundError:
        end = start.end_mark
        has_dashes = self.text[end.index - 3 : end.index] == "---"
        mark_column = end.column - 2 if has_dashes else start.start_mark.column + 1
        line = end.line + 1 if has_dashes else start.start_mark.line + 1
        span = Span(line, mark_column, line, mark_column + 3)
        return _FoundError("TOP112", span, "a second document starts here", "one topic a file")

    def _syntax(self, error: yaml.MarkedYAMLError) -> _FoundError:
        """The complaint of libyaml at its own mark; a quote or bracket that nothing closes, where it opens."""
        mark = error.problem_mark or error.context_mark
        if mark is None:
            return _FoundError("TOP106", START, f"not YAML: {error.problem}")
        if self.text[mark.index : mark.index + 1] == "\t":
            return self._tab(mark.index)
        opening = error.context_mark
        if opening is not None and self._is_unclosed(opening.index):
            quoted = self.text[opening.index]
            span = Span(opening.line + 1, opening.column + 1, opening.line + 1, opening.column + 2)
            return _FoundError("TOP106", span, f"nothing closes this {quoted}", "close it, or quote the text")
        span = Span(mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)
        context = f" {error.context}" if error.context else ""
        return _FoundError("TOP106", span, f"not YAML{context}: {error.problem}", "see the line above as well")

    def _is_unclosed(self, index: int) -> bool:
        opening = self.text[index : index + 1]
        if opening in ("'", '"'):
            return True
        return opening in ("[", "{") and not _closes(self.text, index)


def _read_or_none(text: str) -> Node | None:
    try:
        return _Reading(text).document()
    except _FoundError:
        return None


def _empty() -> _FoundError:
    return _FoundError("TOP113", START, "the file says nothing", "describe a topic, or delete the file")


_TOKEN = re.compile(
    r"""(?<=[\s\[{,:])'(?:[^']|'')*' | (?<=[\s\[{,:])"(?:[^"\\]|\\.)*" | (?<=\s)\#[^\n]* | [\[\]{}]""",
    re.DOTALL | re.VERBOSE,
)
_CLOSERS = {"[": "]", "{": "}"}


def _closes(text: str, index: int) -> bool:
    """Whether the bracket at ``index`` has its partner, by eye: quotes and comments are skipped."""
    expected: list[str] = []
    for found in _TOKEN.finditer(text, index):
        token = found[0]
        if token in _CLOSERS:
            expected.append(_CLOSERS[token])
        elif token in _CLOSERS.values():
            if expected.pop() != token:
                return False
            if not expected:
                return True
    return False


def _span(event: Event) -> Span:
    start, end = event.start_mark, event.end_mark
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)


def _until(start: Event, end: Event) -> Span:
    return Span(start.start_mark.line + 1, start.start_mark.column + 1, end.end_mark.line + 1, end.end_mark.column + 1)

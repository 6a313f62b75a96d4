"""Reads ``topics/`` as a tree of documents, each with nodes: mappings, lists and texts, and nothing else of YAML.

They are made from libyaml's events. Its composer is not used, because a deeply nested file can crash it. Anchors, tags,
merge keys, directives and second documents are refused, so that a diff in git shows every change of meaning.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from topicops.edges.specs.fast_path import read_simple
from topicops.edges.specs.open_files import (
    Place,
    ReadingError,
    check_place,
    kind_and_stem,
    open_regular,
    require_folder,
    room_of,
    walk,
)
from topicops.model.codes import Code
from topicops.model.memory import gc_paused
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import (
    COLON_WITHOUT_BLANK,
    START,
    Document,
    Entry,
    Fields,
    Items,
    Node,
    Span,
    Text,
    Tree,
)

Event = Any
"""An event of libyaml. The stubs have every mark optional; a parser's events have both, and speed counts here."""
Mark = Any

DEEPEST = 16
MOST_NODES = 2_000
WRITE_LESS = (
    "write what topics share into a profile or the environment's defaults, exceptions into "
    "environments/NAME.exceptions.yaml, and leave assignments out"
)
"""Advice for a file that is too long: no file of any kind can be cut in two."""

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
"""One class of characters, which Python finds an order of magnitude sooner."""
_HARMLESS = bytes((*b"\n", *range(0x20, 0x7F)))

_DIRECTIVE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?=%)")
_UTF_16_OR_32 = re.compile(rb"\xff\xfe|\xfe\xff|\x00.|.\x00", re.DOTALL)
"""A mark, or a zero byte among the first two. Source: YAML 1.2, section 5.2."""


def read_tree(topics: Path) -> Tree:
    """Read every file below ``topics``, with its content or its problem. Raises ``UsageError`` for no folder."""
    require_folder(topics)
    with gc_paused():
        read = [_read_place(place) for place in walk(topics)]
    documents = sorted((document for document, _ in read if document is not None), key=lambda found: found.file)
    problems = tuple(problem for _, problem in read if problem is not None)
    return Tree(documents=tuple(documents), problems=problems, files=len(read))


def _read_place(place: Place) -> tuple[Document | None, Diagnostic | None]:
    kind, stem = kind_and_stem(place.folders, place.name)
    room = room_of(kind)
    try:
        check_place(place, kind, stem)
        root = read_document(open_regular(place.path, room=room), room=room)
    except ReadingError as found:
        known = found.code not in (Code.MISPLACED_FILE, Code.WRONG_EXTENSION)
        unread = Document(file=place.file, kind=kind, stem=stem, root=None) if known else None
        return unread, found.diagnostic(place.file)
    return Document(file=place.file, kind=kind, stem=stem, root=root), None


def read_document(data: bytes, *, room: int = 1) -> Node:
    """Parse the bytes of a file, with ``room`` times as many nodes as others may have. Raises ``ReadingError``."""
    text = _decoded(data)
    if "\t" not in text and "\r" not in text:
        simple = read_simple(text, deepest=DEEPEST, most_nodes=MOST_NODES)
        if simple is not None:
            return simple
    return nodes_of_events(text, most_nodes=room * MOST_NODES)


def nodes_of_events(text: str, *, most_nodes: int = MOST_NODES) -> Node:
    """Return what libyaml's events say, whatever the file looks like; or ``ReadingError``."""
    try:
        root = _EventReader(text, most_nodes).document()
    except ReadingError as error:
        raise _mistake_of_git(text) or error from error
    if isinstance(root, Text) and (mistake := _mistake_of_git(text)):
        raise mistake
    return root


_MISTAKES_OF_GIT = (
    (
        re.compile(r"^<{7}(?= |$)|^>{7}(?= |$)", re.MULTILINE),
        "conflict markers of git: the merge is not finished",
        "keep the lines that are right, and delete the markers",
    ),
    (
        re.compile(r"\Aversion https://git-lfs"),
        "this is a pointer of Git LFS, not the file itself",
        "run `git lfs pull`, and take .yaml files out of LFS in .gitattributes",
    ),
)


def _mistake_of_git(text: str) -> ReadingError | None:
    for pattern, what, way_out in _MISTAKES_OF_GIT:
        if found := pattern.search(text):
            return ReadingError(Code.YAML_SYNTAX, _place(text, found.start()), what, way_out)
    return None


def _decoded(data: bytes) -> str:
    if not data.translate(None, _HARMLESS):
        return data.decode("ascii")
    if _UTF_16_OR_32.match(data):
        raise ReadingError(Code.UTF16, START, "UTF-16 or UTF-32", "save the file as UTF-8")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before, why = data[: error.start].decode(), f"byte 0x{data[error.start]:02X} is not UTF-8"
        raise ReadingError(Code.NOT_UTF8, _place(before, len(before)), why, "save as UTF-8") from error
    if text.startswith("\ufeff"):
        why = "the file begins with a byte order mark, which some editors write and nobody sees"
        raise ReadingError(Code.HIDDEN_CHARACTER, START, why, "save it as UTF-8 without a byte order mark (BOM)")
    found = FORBIDDEN.search(text) if _SUSPECT.search(text) else None
    if found:
        why = f"the character U+{ord(found[0]):04X} is hidden or ends a line for some readers only"
        way_out = "delete it, or write it as an escape in double quotes"
        raise ReadingError(Code.HIDDEN_CHARACTER, _place(text, found.start()), why, way_out)
    return text


def _place(text: str, index: int) -> Span:
    line = text.count("\n", 0, index) + 1
    column = index - (text.rfind("\n", 0, index) + 1) + 1
    return Span(line, column, line, column + 1)


_EMPTY = ("the file says nothing", "describe a topic, as `topicops new` does, or delete the file")
_NODE_MARKS = {"&": "an anchor", "*": "an alias", "!": "a tag"}


class _EventReader:
    def __init__(self, text: str, most_nodes: int) -> None:
        self.text = text
        self.most_nodes = most_nodes
        self.nodes = 0
        self.has_tabs = "\t" in text

    def document(self) -> Node:
        if found := _DIRECTIVE.match(self.text):
            span = _place(self.text, found.end())
            raise ReadingError(Code.TAG, span, "a directive is not read", "delete the line")
        loader = yaml.CSafeLoader(self.text)
        try:
            return self._only_document(loader)
        except yaml.MarkedYAMLError as error:
            raise self._syntax(error) from error
        except yaml.YAMLError as error:
            raise ReadingError(Code.YAML_SYNTAX, START, f"not YAML: {error}") from error
        finally:
            loader.dispose()

    def _only_document(self, loader: yaml.CSafeLoader) -> Node:
        loader.get_event()  # stream start
        start: Event = loader.get_event()
        if isinstance(start, yaml.StreamEndEvent):
            raise ReadingError(Code.EMPTY_DOCUMENT, START, *_EMPTY)
        root = self._node(loader, loader.get_event(), depth=1)
        loader.get_event()  # document end
        behind = loader.get_event()
        if isinstance(behind, yaml.DocumentStartEvent):
            raise self._second_document(behind)
        if isinstance(root, Text) and root.is_null:
            raise ReadingError(Code.EMPTY_DOCUMENT, START, *_EMPTY)
        return root

    def _node(self, loader: yaml.CSafeLoader, event: Event, *, depth: int) -> Node:
        mark = event.start_mark
        first = self.text[mark.index : mark.index + 1]
        if first in _NODE_MARKS and not (isinstance(event, yaml.ScalarEvent) and event.start_mark == event.end_mark):
            code, why = Code.TAG if first == "!" else Code.ANCHOR, f"{_NODE_MARKS[first]} is not read"
            raise ReadingError(code, _at(mark), why, "write the value out, or quote the text")
        self.nodes += 1
        if self.nodes > self.most_nodes:
            raise ReadingError(Code.TOO_MANY_VALUES, START, f"more than {self.most_nodes:,} values", WRITE_LESS)
        if self.has_tabs:
            self._refuse_tab_before(mark)
        if isinstance(event, yaml.ScalarEvent):
            return Text(event.value, not event.style, _span(event))
        if depth > DEEPEST:
            why = f"nested deeper than {DEEPEST}"
            raise ReadingError(Code.NESTED_TOO_DEEP, _span(event), why, "no field needs that")
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
            why, way_out = "this key is not plain text", "a key is the name of a field"
            raise ReadingError(Code.KEY_NOT_PLAIN, key.span, why, way_out)
        if key.plain and key.text == "<<":
            way_out = "write the fields out, or use a profile"
            raise ReadingError(Code.MERGE_KEY, key.span, "merge keys are not read", way_out)
        if key.text in seen:
            why = f"{key.text} stands twice; the first is on line {seen[key.text].line}"
            raise ReadingError(Code.DUPLICATE_KEY, key.span, why, "keep one", other=(seen[key.text], "the first one"))
        return key

    def _refuse_tab_before(self, mark: Mark) -> None:
        indentation = self.text[mark.index - mark.column : mark.index]
        if "\t" in indentation and not indentation.strip(" \t"):
            raise self._tab(mark.index - mark.column + indentation.index("\t"))

    def _tab(self, index: int) -> ReadingError:
        where, why = _place(self.text, index), "a tab is used as indentation"
        return ReadingError(Code.TAB_INDENTATION, where, why, "use blanks")

    def _second_document(self, start: Event) -> ReadingError:
        end = start.end_mark
        has_dashes = self.text[end.index - 3 : end.index] == "---"
        mark_column = end.column - 2 if has_dashes else start.start_mark.column + 1
        line = end.line + 1 if has_dashes else start.start_mark.line + 1
        span = Span(line, mark_column, line, mark_column + 3)
        return ReadingError(
            Code.SECOND_DOCUMENT, span, "a second document starts here", "move it to a file of its own, or delete it"
        )

    def _syntax(self, error: yaml.MarkedYAMLError) -> ReadingError:
        """Return the complaint of libyaml at its own mark; a quote or bracket that nothing closes, where it opens."""
        mark = error.problem_mark or error.context_mark
        if mark is None:
            return ReadingError(Code.YAML_SYNTAX, START, f"not YAML: {error.problem}")
        if self.text[mark.index : mark.index + 1] == "\t":
            return self._tab(mark.index)
        opening = error.context_mark
        if opening is not None and self._is_unclosed(opening.index):
            what = f"nothing closes this {self.text[opening.index]}"
            return ReadingError(Code.YAML_SYNTAX, _at(opening), what, "close it, or take it out")
        if "mapping values are not allowed" in str(error.problem) and (known := self._colon(mark)):
            return known
        context = f" {error.context}" if error.context else ""
        return ReadingError(
            Code.YAML_SYNTAX, _at(mark), f"not YAML{context}: {error.problem}", "see the line above as well"
        )

    def _colon(self, mark: Mark) -> ReadingError | None:
        """Return a colon without a blank in the line above, or one with a blank in the middle of a text."""
        above, line = ["", *self.text.splitlines()][mark.line : mark.line + 2]
        if text := _TEXT_WITH_COLON.match(line, endpos=mark.column):
            span = Span(mark.line + 1, text.end() + 1, mark.line + 1, len(line) + 1)
            why = "a colon and a blank in a text that is not quoted"
            return ReadingError(Code.YAML_SYNTAX, span, why, f'quote the text: "{line[text.end() :].strip()}"')
        if key := COLON_WITHOUT_BLANK.match(above):
            span = Span(mark.line, key.start(1) + 1, mark.line, key.end() + 1)
            return ReadingError(Code.YAML_SYNTAX, span, "no blank after the colon", f"write {key[1]}: {key[2]}")
        return None

    def _is_unclosed(self, index: int) -> bool:
        opening = self.text[index : index + 1]
        if opening in ("'", '"'):
            return True
        return opening in ("[", "{") and not _closes(self.text, index)


_TEXT_WITH_COLON = re.compile(r"\s*[\w.]+:\s+(?=[^\s'\"{\[])")
_TOKEN = re.compile(
    r"""(?<=[\s\[{,:])'(?:[^']|'')*' | (?<=[\s\[{,:])"(?:[^"\\]|\\.)*" | (?<=\s)\#[^\n]* | [\[\]{}]""",
    re.DOTALL | re.VERBOSE,
)
_CLOSERS = {"[": "]", "{": "}"}


def _closes(text: str, index: int) -> bool:
    """Return whether the bracket at ``index`` has its partner, by eye: quotes and comments are skipped."""
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


def _at(mark: Mark) -> Span:
    return Span(mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)


def _span(event: Event) -> Span:
    start, end = event.start_mark, event.end_mark
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)


def _until(start: Event, end: Event) -> Span:
    return Span(start.start_mark.line + 1, start.start_mark.column + 1, end.end_mark.line + 1, end.end_mark.column + 1)

"""No control character and no markup of a spec reaches an output."""

from __future__ import annotations

import errno
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from topicops.model.errors import sentence
from topicops.model.printable import bold, markdown, printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("team-größe 订单", "team-größe 订单", id="letters of any script stay"),
        pytest.param("\x1b[31mred", r"\x1b[31mred", id="terminal escape"),
        pytest.param("a\nb\tc\r", r"a\nb\tc\r", id="line ends and tabs"),
        pytest.param("\x00\x7f\x9b", r"\x00\x7f\x9b", id="C0, DEL and C1"),
        pytest.param("a\u202eb\u200bc", r"a\u202eb\u200bc", id="direction and zero width"),
        pytest.param("\u2028\u2029", r"\u2028\u2029", id="line and paragraph separators"),
        pytest.param("a\u00a0b\u3000c", r"a\xa0b\u3000c", id="spaces that are not the space"),
        pytest.param("\ud800", r"\ud800", id="a lone surrogate"),
    ],
)
def test_what_does_not_show_as_itself_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    printable(text).encode()


def test_a_document_keeps_its_lines() -> None:
    assert printable_lines("a\n\x1bb\n") == "a\n\\x1bb\n"


HOSTILE = [
    "[click](http://x)",
    "![i](x)",
    "[ ] task",
    "[^1]",
    "a | b",
    r"a \| b \\| c \\\| d",
    "`code` ``more``",
    "**bold** _it_ __it__ ~no~ ~~no~~ ~~~",
    "<script> <!-- --> <a@b.c>",
    "$x$ $$y$$",
    "@someone @org/team a@b.org #12 o/r#12 GH-12",
    ":white_check_mark: :+1:",
    "https://example.org ftp://example.org",
    "www.example.org",
    "# title",
    "##",
    "ends in a heading's end #",
    "ends in its end ###",
    "> quote",
    "- item",
    "---",
    "+ item",
    "1. item",
    "1)",
    "    code",
    "&lt; &#124; &amp",
    "ends in \\",
    "a\n| b |\n\n# c",
]
ZERO_WIDTH_SPACE = "\u200b"
GITHUB = MarkdownIt("gfm-like")


def assert_only_words(inline: Token, words: str) -> None:
    assert inline.children is not None
    assert {child.type for child in inline.children} <= {"text"}
    assert "".join(child.content for child in inline.children).replace(ZERO_WIDTH_SPACE, "") == words


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_are_only_words_in_a_cell_a_list_and_a_heading(text: str) -> None:
    assert_only_words_in_a_cell(text)
    listed = GITHUB.parse(f"- {markdown(text)}\n- next\n")
    opened = [token.type for token in listed if token.nesting == 1]
    assert opened == ["bullet_list_open", *["list_item_open", "paragraph_open"] * 2]
    assert_only_words(next(token for token in listed if token.type == "inline"), printable(text).strip())
    first, inline, last = GITHUB.parse(f"### {markdown(text)}\n")
    assert (first.tag, last.tag) == ("h3", "h3")
    assert_only_words(inline, printable(text).strip())


def assert_only_words_in_a_cell(text: str) -> None:
    """A table makes one cell of it, and the next one is another."""
    tokens = GITHUB.parse(f"| what | next |\n| --- | --- |\n| {markdown(text)} | next |\n")
    first, second = [token for token in tokens if token.type == "inline"][2:]
    assert_only_words(first, printable(text).strip())
    assert second.content == "next"


@pytest.mark.parametrize("text", ["prod", "*", "a_", "~", "<b>", "1.", "", "  "])
def test_what_is_bold_is_bold_and_nothing_else_and_no_text_leaves_no_asterisk(text: str) -> None:
    (inline,) = (token for token in GITHUB.parse(f"of {bold(text)}, done") if token.type == "inline")

    kinds = [child.type for child in inline.children or () if child.type.startswith("strong")]
    assert kinds == (["strong_open", "strong_close"] if text.strip() else [])
    assert "".join(child.content for child in inline.children or ()) == f"of {text.strip()}, done"


@given(st.text(alphabet="\\`*_[]()#|~@<>&;!:/-+.1aGHw \n$", max_size=30))
def test_no_mixture_of_marks_leaves_its_cell_or_becomes_markup(text: str) -> None:
    assert_only_words_in_a_cell(text)


@pytest.mark.parametrize(
    ("text", "never"),
    [
        pytest.param("@someone", r"@\w", id="a mention"),
        pytest.param("fixes #12", r"#\d", id="an issue"),
        pytest.param("o/r#12 GH-12", r"r#\d|GH-\d", id="an issue elsewhere"),
        pytest.param("a@b.org", r"@\w", id="a mail address"),
        pytest.param(":tada:", r":\w+:", id="an emoji"),
        pytest.param("$x$ ($y$)", r"(?<!\u200b)\$", id="a formula"),
    ],
)
def test_what_github_looks_for_in_the_finished_text_is_cut(text: str, never: str) -> None:
    (inline,) = (token for token in GITHUB.parse(markdown(text)) if token.type == "inline")

    rendered = "".join(child.content for child in inline.children or ())
    assert re.search(never, text)
    assert re.search(never, rendered) is None


@pytest.mark.parametrize("text", ["http://x.org", "https://x.org", "ftp://x.org", "www.x.org", "WWW.x.org"])
def test_no_address_becomes_a_link(text: str) -> None:
    assert "://" not in markdown(text)
    assert "www." not in markdown(text).lower()


@pytest.mark.parametrize(
    "text",
    [
        "payments.orders, 3 -> 6",
        "topics/shop/web.clicks_v2.yaml:4: replicas: 0: 1,2,3; 12:30:00",
        "retention.ms: (not set) -> 604800000 (7d)",
        "R&D",
        "team-größe 订单",
        r"gone\x1b, over\n",
    ],
)
def test_ordinary_words_stay_as_they_are_in_markdown(text: str) -> None:
    assert markdown(text) == text


# ---- Errors that no code expects, as a sentence that says what to do ----


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENAMETOOLONG, "too long", "x" * 300), f"{'x' * 60}...: this name is too long"),
        (OSError(errno.ENAMETOOLONG, "too long"), "this name is too long"),
        (UnicodeEncodeError("utf-8", "a/b\udcff.yaml", 3, 4, "surrogates"), "a/b\\udcff.yaml: this name or text"),
        (OSError(errno.EMFILE, "Too many open files"), "raise ulimit -n"),
        (MemoryError(), "no memory"),
        (KeyError("x"), "internal error: KeyError: 'x'"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_with_a_known_cause_says_it(error: Exception, words: str) -> None:
    assert words in sentence(error)

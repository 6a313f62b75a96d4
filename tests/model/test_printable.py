"""No control character and no markup of a spec reaches an output."""

import pytest

from topicops.model.printable import markdown, printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("team-größe 订单", "team-größe 订单", id="letters of any script stay"),
        pytest.param("\x1b[31mred", r"\x1b[31mred", id="terminal escape"),
        pytest.param("a\nb\tc\r", r"a\nb\tc\r", id="line ends and tabs"),
        pytest.param("\x00\x7f\x9b", r"\x00\x7f\x9b", id="C0, DEL and C1"),
        pytest.param("a\u202eb\u200bc", r"a\u202eb\u200bc", id="direction and zero width"),
        pytest.param("\u2028\u2029", r"\u2028\u2029", id="line and paragraph separators"),
        pytest.param("\ud800", r"\ud800", id="a lone surrogate"),
    ],
)
def test_what_does_not_show_as_itself_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    printable(text).encode()


def test_a_document_keeps_its_lines() -> None:
    assert printable_lines("a\n\x1bb\n") == "a\n\\x1bb\n"


@pytest.mark.parametrize(
    "text",
    [
        "[click](http://x)",
        "![i](x)",
        "a | b",
        "`code`",
        "**bold** _it_ ~~no~~",
        "<script>",
        "@someone #12",
        "https://example.org",
        "www.example.org",
        "# title",
        "&lt;",
        "a\n| b |",
    ],
)
def test_no_markup_survives(text: str) -> None:
    shown = markdown(text)
    assert not set(shown.replace("&#", "")) & set("[]|`*_~<>@#\n")
    assert "://" not in shown
    assert "www." not in shown


def test_plain_words_stay_readable_in_markdown() -> None:
    assert markdown("payments.orders, 3 -> 6") == "payments.orders, 3 -&gt; 6"

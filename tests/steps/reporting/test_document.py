"""One document is shown in every form, and says the same in each."""

from __future__ import annotations

from markdown_it import MarkdownIt

from topicops.steps.reporting.document import Code, Entry, Said, Section, as_markdown, as_text, markdown_lines
from topicops.steps.reporting.markup import section

ENTRY = Entry(
    "orders will grow",
    ((Said("orders", bold="grow"), "a.yaml:4"), ("partitions: 3", Said("safe"), Said("x", label="why"))),
)
DOCUMENT = [
    Section(title="Title", level=3, rows=()),
    Section(rows=("A paragraph.", Said(bold="Strong."))),
    Section(title="List", rows=("one", "two | <b>")),
    Section(title="Table", head=("name", "count"), rows=[("a", "1"), ("bcd", "20")]),
    Section(title="Entries", head=("topic", "what"), rows=[ENTRY]),
    Section(title="To copy", rows=[Code("orders", '{"a": "```"}')]),
    Section(title="Nothing", rows=()),
]


def test_a_terminal_has_each_section_with_its_rows_in_columns_or_below_a_sentence() -> None:
    assert as_text(DOCUMENT[1:]).split("\n\n") == [
        "A paragraph.\nStrong.",
        "List:\n  one\n  two | <b>",
        "Table:\n  name  count\n  a     1\n  bcd   20",
        "Entries:\n  orders will grow\n      partitions: 3\n      why: x",
        'To copy:\n    orders: {"a": "```"}\n',
    ]


def test_markdown_has_the_same_as_headings_lists_tables_and_fences() -> None:
    html = MarkdownIt("gfm-like").render(as_markdown(DOCUMENT))
    assert "<h3>Title</h3>\n<p>A paragraph.</p>\n<p><strong>Strong.</strong></p>" in html
    assert "<li>two | &lt;b&gt;</li>" in html
    assert "| **grow** orders<br>a.yaml:4 | partitions: 3<br>safe<br>x |" in as_markdown(DOCUMENT)
    assert "{&quot;a&quot;: &quot;```&quot;}" in html
    assert "Nothing" not in html


def test_of_a_long_section_the_rows_that_do_not_fit_are_counted_and_later_sections_keep_their_headings() -> None:
    long = Section(title="Long", rows=["x" * 50] * 100, noun="rows")
    text = as_markdown([long, Section(rows=("The end.",))], limit=1_000, whole="the file")
    kept = text.count("- x")
    assert (len(text) <= 1_000, kept > 10) == (True, True)
    assert text.endswith(f"*{100 - kept} rows are left out here; the file has all.*\n\nThe end.\n")


def test_a_folded_section_says_how_many_rows_it_has() -> None:
    lines = markdown_lines(Section(title="List", rows=("one", "two"), is_folded=True))
    assert lines[:3] == ["<details>", "<summary>List (2)</summary>", ""]
    assert lines[-2:] == ["</details>", ""]


def test_a_page_has_a_list_or_a_table_and_counts_what_it_leaves_out() -> None:
    listed, tabled = (section(found, most=1) for found in DOCUMENT[2:4])
    assert listed is not None
    assert tabled is not None
    assert listed.text.startswith("<h2>List</h2><ul><li>one</li></ul>")
    assert "… and 1 more lines" in listed.text
    assert "<td>a</td><td>1</td>" in tabled.text
    assert section(DOCUMENT[-1], most=1) is None

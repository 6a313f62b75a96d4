"""Whatever a spec or a cluster says, a plan is read as we wrote it: on a terminal, in a comment, by a program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import count, zip_longest

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from fakes import builders
from fixtures.any_plan import any_plans, with_words
from fixtures.rich_plan import rich_plan
from topicops.model.plans.plan import Plan
from topicops.on_airflow.tasks.question import MOST_ROWS, question_markdown
from topicops.steps.planning.gate import gate
from topicops.steps.reporting.document import MARKDOWN_LIMIT
from topicops.steps.reporting.plan_document import plan_markdown, plan_text

GITHUB = MarkdownIt("gfm-like", {"html": True})
Renderer = Callable[[Plan], str]
MARGIN = 4
"""Characters of a line that are ours: indentation, and the sign of a change."""

HOSTILE = [
    pytest.param("a | b", id="a cell"),
    pytest.param("|\n| x |\n\n# t", id="a row, and the end of the table"),
    pytest.param("\n```\n", id="a fence"),
    pytest.param("```", id="a fence at once"),
    pytest.param("~~~", id="another fence"),
    pytest.param("@everyone @org/team", id="mentions"),
    pytest.param("![i](https://x.org/i.png)", id="an image"),
    pytest.param("<img src=https://x.org/i.png>", id="an image in HTML"),
    pytest.param("<!--", id="a comment in HTML"),
    pytest.param("<details><table></td></tr></table>", id="HTML that closes what is open"),
    pytest.param("[x](javascript:1)", id="a link"),
    pytest.param("https://x.org www.x.org a@b.org", id="addresses"),
    pytest.param("[x]: https://x.org", id="a reference"),
    pytest.param("**b** _i_ `c` ~~s~~ $m$", id="markup"),
    pytest.param("**", id="the end of what is bold"),
    pytest.param("\\", id="a backslash"),
    pytest.param("a\\|b", id="an escaped cell"),
    pytest.param("# t", id="a heading"),
    pytest.param("- [ ] x", id="a task"),
    pytest.param("> q", id="a quotation"),
    pytest.param("    x", id="code by indentation"),
    pytest.param("---", id="a rule"),
    pytest.param("===", id="a heading by its underline"),
    pytest.param("1. x", id="a list"),
    pytest.param(":tada: #12 GH-12", id="emoji and issues"),
    pytest.param("&lt;b&gt; &#124;", id="entities"),
    pytest.param("\x1b[2J\x07\x00\r\x9b1m", id="terminal codes"),
    pytest.param("\u202e\u200b\u2028\u2029\u0085\u00a0", id="what does not show"),
    pytest.param("x" * 5000, id="much"),
    pytest.param("| ` * _ " * 20, id="much markup"),
    pytest.param(" ", id="nothing"),
]


def hostile(text: str) -> Plan:
    """The rich plan with these words in every text field, each made unique by a number so that keys stay keys."""
    numbers = count()
    return with_words(rich_plan(), lambda _: f"{text}{next(numbers)}{text}")


def harmless() -> Plan:
    return hostile("word")


Shape = list[tuple[str, str, int]]


def shape(tokens: Iterable[Token]) -> Shape:
    """What a parser sees, without the words: kinds, tags and nesting, of inlines too."""
    found = []
    for token in tokens:
        found.append((token.type, token.tag, token.level))
        found += shape(merged(token.children or []))
    return found


def first_difference(one: Shape, other: Shape) -> tuple[object, object] | None:
    """A whole comment has thousands of tokens, too many to show."""
    return next((pair for pair in zip_longest(one, other) if pair[0] != pair[1]), None)


def merged(inlines: Iterable[Token]) -> list[Token]:
    """Neighbouring texts as one: an entity or an escape makes no structure."""
    kept: list[Token] = []
    for token in inlines:
        is_text = token.type in ("text", "text_special")
        if not (is_text and kept and kept[-1].type == "text"):
            kept.append(token)
    return kept


@cache
def harmless_shape(render: Renderer) -> Shape:
    return shape(GITHUB.parse(render(harmless())))


def test_the_harmless_plan_has_something_of_everything() -> None:
    comment = plan_markdown(harmless())
    for title in ("Look at these first", "Blocked", "Other changes", "Also", "Load of brokers", "reassignment tool"):
        assert f"#### {title}" in comment or f"{title}\n" in comment
    assert len(harmless_shape(plan_markdown)) > 300


@pytest.mark.parametrize("render", [plan_markdown, question_markdown])
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_in_every_field_leave_markdown_the_shape_it_has_with_harmless_ones(
    text: str, render: Renderer
) -> None:
    assert first_difference(shape(GITHUB.parse(render(hostile(text)))), harmless_shape(render)) is None


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_in_every_field_ping_nobody_and_load_nothing(text: str) -> None:
    html = GITHUB.render(plan_markdown(hostile(text)))

    outside_of_code = re.sub(r"<pre>.*?</pre>", "", html, flags=re.DOTALL)
    assert re.search(r"<(img|a|script|details|input)\b", html) is None
    assert re.search(r"@\w|#\d|GH-\d|:tada:", outside_of_code) is None


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_in_every_field_draw_no_line_of_their_own_on_a_terminal(text: str) -> None:
    lines, expected = plan_text(hostile(text)).split("\n"), plan_text(harmless()).split("\n")

    assert all(line.isprintable() for line in lines)
    assert len(lines) == len(expected)
    assert [line[:MARGIN] for line in lines] == [line[:MARGIN] for line in expected]


ANY_TEXT = st.text(max_size=30) | st.text(alphabet="|`*_<>[]()!@#\\~\n\r\x1b -", max_size=12)


WORDS_ONLY = MarkdownIt("gfm-like", {"html": True})
WORDS_ONLY.linkify.set({"fuzzy_link": False})
"""GitHub takes ``0.AC`` for words, as a name without ``www.`` is; the other parser has it for an address."""


@given(plan=any_plans(ANY_TEXT))
@settings(max_examples=10)
def test_any_plan_is_shown_as_words_only(plan: Plan) -> None:
    assert_only_words(plan)


@pytest.mark.soak
@given(plan=any_plans(ANY_TEXT))
@settings(max_examples=1_000, suppress_health_check=[HealthCheck.too_slow])
def test_any_of_many_plans_is_shown_as_words_only(plan: Plan) -> None:
    assert_only_words(plan)


def assert_only_words(plan: Plan) -> None:
    """No control character reaches an output, a comment holds it, and its shape does not depend on the words."""
    text, comment, harmless_one = plan_text(plan), plan_markdown(plan), plan_markdown(in_harmless_words(plan))

    assert all(line.isprintable() for line in (text + comment).split("\n"))
    assert len(comment) <= MARKDOWN_LIMIT
    assert first_difference(shape(WORDS_ONLY.parse(comment)), shape(WORDS_ONLY.parse(harmless_one))) is None


def in_harmless_words(plan: Plan) -> Plan:
    """Each text has one of its own in its place; what is empty or blank stays so, for it fills no cell."""
    numbers = count()
    seen: dict[str, str] = {}
    return with_words(plan, lambda text: seen.setdefault(text, f"word{next(numbers)}") if text.strip(" ") else text)


def test_a_question_about_very_many_changes_lists_the_riskiest_and_counts_the_rest() -> None:
    safe = [builders.create_change(f"new-{n}") for n in range(3 * MOST_ROWS)]
    plan = gate(builders.change_set([*safe, builders.delete_change("old")]), builders.environment())
    question = question_markdown(plan)
    rows = [line for line in question.splitlines() if line.startswith(("| **create** ", "| **delete** "))]
    assert (len(rows), rows[0].startswith("| **delete** old<br>")) == (MOST_ROWS, True)
    assert f"{2 * MOST_ROWS + 1} more changes, asked about as well**: {2 * MOST_ROWS + 1} create (safe)" in question


def test_who_approves_a_delete_reads_its_traffic_its_groups_its_owner_and_the_reason_of_its_tombstone() -> None:
    question = question_markdown(rich_plan())

    (row,) = [line for line in question.splitlines() if line.startswith("| **delete** ")]
    (goes,) = [line for line in question.splitlines() if line.startswith("- **payments.orders-v1** reason: ")]
    assert "| team-shop |" in row
    assert "reason: Replaced by payments.orders-v2; the last reader moved in March." in goes
    assert "last record of 2023-11-14T22:13:20Z; end offsets add up to 48210; groups: billing (Stable, lag 12)" in goes

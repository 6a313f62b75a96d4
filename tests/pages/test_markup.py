"""Parts of pages: markup, and pages without those of topics."""

from __future__ import annotations

import pytest

from fixtures.html_seen import Seen
from fixtures.rich_plan import HOSTILE
from topicops.on_airflow import plugged_at_start as topic_pages
from topicops.steps.reporting.markup import document, table, tag, together


def test_a_text_is_escaped_wherever_it_stands() -> None:
    seen = Seen(tag("p", HOSTILE, title=HOSTILE).text)
    assert seen.elements == [("p", {"title": HOSTILE})]
    assert seen.text == HOSTILE


def test_finished_markup_stands_as_it_is_and_none_is_left_out() -> None:
    assert tag("p", "a", tag("b", "c"), None, title=None).text == "<p>a<b>c</b></p>"
    assert together("<", None, tag("i")).text == "&lt;<i></i>"


def test_what_a_reader_would_not_see_is_spelled_out() -> None:
    assert tag("p", "a\u202eb\x00c\nd").text == r"<p>a\u202eb\x00c\nd</p>"


@pytest.mark.parametrize("name", ["script", "style"])
def test_no_page_has_a_script_or_a_style_inside(name: str) -> None:
    with pytest.raises(ValueError, match="takes no content"):
        tag(name, "alert(1)")


def test_a_table_escapes_its_cells_and_its_head() -> None:
    seen = Seen(table([HOSTILE], [[HOSTILE, None]]).text)
    assert seen.texts == [HOSTILE, HOSTILE]
    assert len(seen.all("td")) == 2


def test_a_document_names_its_files_beside_it() -> None:
    seen = Seen(document(HOSTILE, static="static/").text)
    assert seen.all("script") == [{"src": "static/pages.js", "defer": "defer"}]
    assert seen.text.strip() == HOSTILE


# ---- Without pages of topics, a name is no link ----


@pytest.fixture(autouse=True)
def none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_pages, "TOPIC_PAGES", ())


def test_a_name_leads_nowhere() -> None:
    assert topic_pages.topic_link("a<b", "why").text == "a&lt;b"

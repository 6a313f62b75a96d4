"""Without pages of topics, a name is no link, and the page of another feature has a head of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.html_seen import Seen
from topicops.on_airflow import plugged_at_start as topic_pages
from topicops.on_airflow.plugged import Page
from topicops.steps.reporting.markup import tag


@pytest.fixture(autouse=True)
def none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_pages, "TOPIC_PAGES", ())


def test_a_name_leads_nowhere() -> None:
    assert topic_pages.topic_link("a<b", "why").text == "a&lt;b"


def test_a_page_names_itself_and_its_environment(tmp_path: Path) -> None:
    page = Page("loads", "Loads", lambda home, environment: [tag("p", f"of {environment}, {home.name}")])
    text = Seen(topic_pages.framed(page, tmp_path, "prod")).text
    assert "Loads: prod" in text
    assert f"of prod, {tmp_path.name}" in text

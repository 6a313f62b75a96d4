"""The parts that all pages share: sentences, links, tiles, filters and bars."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode

from topicops.on_airflow.names import STATIC, RunOf
from topicops.steps.reporting.markup import Html, document, tag

S = TypeVar("S", bound=str)
_COMMIT_PAGE = re.compile(r"(?P<base>https?://.+?)/(?:tree|commit|blob)/(?P<sha>[0-9a-f]{7,64})(?:/.*)?", re.ASCII)
BELOW = "../../../"
"""Leads from a page of a run or an environment to Airflow's own pages."""
NOT_OURS = "This is no DAG of topicops: there is nothing to show."


def page(title: str, *content: Html | None) -> str:
    return document(title, *content, static=STATIC).text


def heading(title: str, run: RunOf) -> Html:
    """Name the run, because the iframe may show another run than the page around it."""
    return tag("header", tag("h1", title), muted(tag("code", run.dag_id), " ", tag("code", run.run_id)))


def muted(*content: Html | str | None) -> Html:
    return tag("p", *content, cls="muted")


def empty(sentence: str) -> Html:
    """Say why there is nothing."""
    return tag("p", sentence, cls="empty")


def nothing(run: RunOf, sentence: str) -> Html:
    return empty(sentence if run.environment else NOT_OURS)


def problem_box(problem: str) -> Html:
    return tag("p", problem, cls="card bad", role="alert")


def more(count: int, noun: str) -> Html | None:
    """Say how many others there are; None where there are none."""
    return muted(f"… and {count:,} more {noun}") if count > 0 else None


def quoted(part: str) -> str:
    return quote(part, safe="")


def outside(content: Html | str, address: str) -> Html | str:
    """Lead to another site; without an address, only show the content."""
    return tag("a", content, href=address, cls="airflow", rel="noopener noreferrer") if address else content


def file_link(commit_address: str, file: str, line: int, column: int | None = None) -> Html | str:
    """Lead to a line of a file in the forge, by the address of the commit that it is of, if that is known."""
    place = tag("code", f"{file}:{line}" if column is None else f"{file}:{line}:{column}")
    found = _COMMIT_PAGE.fullmatch(commit_address)
    if found is None or Path(file).is_absolute() or file.startswith("../"):
        return place
    return outside(place, f"{found['base']}/blob/{found['sha']}/{quote(file)}#L{line}")


def run_link(name: str, below: str, label: Html | None = None) -> Html:
    """Lead to the run ``<DAG>/<run id>`` by the way ``below`` to Airflow's own pages; a run of the shell has none."""
    dag_id, _, run_id = name.partition("/")
    if dag_id == "cli":
        return tag("code", name)
    return tag("a", label or run_id, href=f"{below}dags/{quoted(dag_id)}/runs/{quoted(run_id)}", cls="airflow")


def with_query(path: str, words: Mapping[str, object]) -> str:
    """Give the address of a page with these words; empty ones are left out."""
    query = urlencode({name: value for name, value in words.items() if value not in ("", None)})
    return f"{path}?{query}" if query else path


def tiles(counts: Mapping[S, int], tones: Mapping[S, str], chosen: str, address: Callable[[str], str]) -> Html | None:
    """Show a tile for each state that occurs; it leads to what it counts, and back.

    ``address`` gives the page with the topics or changes of one state alone, and with all for an empty text.
    """
    shown = [
        tag(
            "li",
            tag(
                "a",
                tag("strong", f"{counts[word]:,}"),
                f" {word}",
                href=address("" if chosen == word else word),
                aria_current="true" if chosen == word else None,
            ),
            cls=f"tile {tone}",
        )
        for word, tone in tones.items()
        if counts.get(word)
    ]
    return tag("ul", *shown, cls="tiles") if shown else None


def chip(label: str, address: str, *, is_set: bool | str = False, count: int | None = None) -> Html:
    """Show a link as a word on a pill; ``is_set`` if it leads to what is shown, ``page`` if that is a whole page."""
    number = None if count is None else tag("span", f" {count:,}", cls="muted")
    return tag("a", label, number, href=address, cls="chip", aria_current=str(is_set).lower() if is_set else None)


def chips(name: str, shown: Iterable[Html]) -> Html:
    return tag("div", tag("span", name, cls="muted"), *shown, cls="chips")


def choices(name: str, counts: Mapping[str, int | None], chosen: str, address: Callable[[str], str]) -> Html:
    """Show a chip for each word, with its count. It leads to what has the word; the chosen one, to all."""
    shown = (
        chip(word, address("" if word == chosen else word), is_set=word == chosen, count=count)
        for word, count in counts.items()
    )
    return chips(name, shown)


def filters(groups: Iterable[Html | None], *, q: str, address: str, everything: str) -> Html:
    """Show groups of chips, and a field to search in.

    ``address`` leads to the page without the search, ``everything`` to the page without a filter; empty if none is set.
    """
    search = tag(
        "input",
        type="search",
        id="search",
        value=q,
        placeholder="topic, owner, file; then Enter",
        aria_label="Search topic, owner or file",
        data_address=address,
    )
    show_all = chip("show all", everything) if everything else None
    return tag("nav", *groups, tag("div", search, show_all, cls="chips"), cls="filters", aria_label="Filter")


def bar(before: int, after: int, *, of: int) -> Html:
    """Show what stays, and behind it what comes or goes; a full bar is ``of``. Its numbers stand beside it."""
    stays, moves = percent(min(before, after), of), percent(abs(after - before), of)
    return drawn_bar(("stays", 0.0, stays), ("comes" if after > before else "goes", stays, moves))


def drawn_bar(*pieces: tuple[str, float, float], cls: str = "bar") -> Html:
    """Draw pieces, each with its class, begin and width in percent."""
    drawn = (
        tag("rect", cls=kind, x=f"{begin:.2f}", y="0", width=f"{width:.2f}", height="10")
        for kind, begin, width in pieces
    )
    return tag("svg", *drawn, cls=cls, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


def percent(part: int, of: int) -> float:
    return 100.0 * part / of if of else 0.0

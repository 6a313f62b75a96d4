"""The first page: is anything wrong, and where? A row for each environment, those in trouble first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from topicops.features.topic_pages.on_airflow.frame import A_RUN_GOES_ON, TONES, age, news
from topicops.features.topic_pages.on_airflow.reading import EnvironmentRow
from topicops.features.topic_pages.values import Word
from topicops.model.printable import plural
from topicops.on_airflow.pages.airflow_state import AirflowDag
from topicops.on_airflow.pages.parts import empty, page, quoted, run_link, with_query
from topicops.steps.reporting.markup import Html, pill, table, tag, together

_HEAD = ("environment", "is anything wrong", "facts", "newest run", "waits for you", "next run")
_BELOW = "../"
_ENDS = ("in trouble", "to look at", "never read", "well")
_RUN_TONES = {"success": "good", "failed": "bad"}


def environments_page(environments: Sequence[EnvironmentRow], import_errors: int = 0) -> str:
    """Give the whole document, for a person who may see these environments; with the count of broken DAG files."""
    head = tag("header", tag("h1", "Topics"))
    if not environments:
        nothing = (
            "There is no environment that you may see. A file below topics/environments/ makes one; or ask who runs "
            "Airflow for the right to read the DAGs topic_pipeline_…"
        )
        return page("Topics", head, *_unread(import_errors), empty(nothing))
    ends = [(end_of(model), model) for model in environments]
    ends.sort(key=lambda found: (_ENDS.index(found[0]), found[1].indexed.environment))  # the worst first
    rows = ([*_row(model, end)] for end, model in ends)
    counts = Counter(end for end, _ in ends)
    said = ", ".join(f"{counts[end]} {end}" for end in _ENDS if counts[end])
    verdict = f"Of {plural(counts.total(), 'environment')}: {said}."
    body = [tag("p", verdict, cls="verdict"), *_unread(import_errors)]
    return page("Topics", head, *body, table(_HEAD, rows, cls="environments"))


def end_of(model: EnvironmentRow) -> str:
    """Give a word of ``_ENDS``: what cannot be read, or was never read, is never well."""
    tones = {found.tone for found in news(model.indexed, _BELOW) if found.words != A_RUN_GOES_ON}
    tones |= {TONES[word] for word, count in model.words.items() if count}
    if "bad" in tones:
        return "in trouble"
    if model.indexed.head is None:
        return "never read"
    return "to look at" if "warn" in tones or model.question else "well"


def _unread(import_errors: int) -> Iterator[Html]:
    if import_errors:
        said = (
            f"Airflow cannot read {plural(import_errors, 'DAG file')}: an environment may be missing here, or be old. "
        )
        yield tag("p", said, "Home, “Dag Import Errors”, says which and why.", cls="card bad")


def _row(model: EnvironmentRow, end: str) -> Iterator[Html | str | None]:
    indexed, head = model.indexed, model.indexed.head
    tone = {"in trouble": "bad", "well": "good"}.get(end, "warn")
    link = tag("a", indexed.environment, href=f"dags/{quoted(indexed.dag_id)}/topics", cls="topic")
    yield together(link, tag("div", pill(end, tone)))
    yield together(*_wrong(model))
    yield "never read" if head is None else f"read {age(head.known_at)}"
    yield _newest(indexed.pipeline)
    approval = f"topic_approval_{indexed.environment}/{model.question}"
    yield together("an answer: ", run_link(approval, _BELOW)) if model.question else None
    yield _next(indexed.pipeline)


def _wrong(model: EnvironmentRow) -> Iterator[Html]:
    """Yield what makes the row what it is: sentences in few words, then the states of its topics with counts."""
    told = list(news(model.indexed, _BELOW))
    for found in told:
        yield together(pill(found.words, found.tone), " ")
    if model.indexed.head is None and not told:
        yield together("not known")
    shown = {word: model.words.get(word, 0) for word, tone in TONES.items() if tone in ("bad", "warn")}
    for word, count in shown.items():
        if count:
            yield together(_count(model, word, count), " ")
    if not any(shown.values()) and model.indexed.head is not None:
        yield _count(model, "healthy", model.words.get("healthy", 0))


def _count(model: EnvironmentRow, word: Word, count: int) -> Html:
    href = f"dags/{quoted(model.indexed.dag_id)}/{with_query('topics', {'state': word})}"
    return tag("a", pill(f"{count:,} {word}", TONES[word]), href=href)


def _newest(dag: AirflowDag | None) -> Html | str:
    if dag is None or dag.newest is None:
        return "never ran"
    run = dag.newest
    at = run.ended_at or run.started_at
    when = f" {age(at)}" if at else ""
    return together(pill(run.state, _RUN_TONES.get(run.state, "calm")), f"{when} ", run_link(run.name, _BELOW))


def _next(dag: AirflowDag | None) -> str:
    if dag is None:
        return "never: Airflow has no such DAG"
    if dag.is_paused:
        return "never: paused"
    if not dag.has_schedule or dag.next_run_at is None:
        return "when somebody starts it"
    return age(dag.next_run_at)

"""The first page, and what every page of an environment says of the age of its facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fixtures.html_seen import Seen
from fixtures.topic_index import RUN, write_index
from topicops.features.topic_pages.later import LaterRun
from topicops.features.topic_pages.on_airflow.brokers_page import brokers_page
from topicops.features.topic_pages.on_airflow.environments_page import end_of, environments_page
from topicops.features.topic_pages.on_airflow.frame import age
from topicops.features.topic_pages.on_airflow.reading import EnvironmentRow, Indexed, read_environments, read_indexed
from topicops.features.topic_pages.on_airflow.topic_page import topic_page
from topicops.features.topic_pages.on_airflow.topics_page import topics_page
from topicops.features.topic_pages.values import TopicsWanted
from topicops.flow.runs.run import now
from topicops.model.runs.results import OutcomeStatus
from topicops.on_airflow.pages.airflow_state import AirflowDag, AirflowRun

DAG = "topic_pipeline_local"
WELL = AirflowDag(
    dag_id=DAG,
    next_run_at=now() + timedelta(days=3, minutes=1),
    newest=AirflowRun(dag_id=DAG, run_id="manual__1", state="success", ended_at=now()),
)


def model(home: Path, dag: AirflowDag | None = WELL, question: str = "") -> EnvironmentRow:
    questions = {"topic_approval_local": question} if question else {}
    (found,) = read_environments(home, ["local"], lambda _: {DAG: dag} if dag else {}, questions)
    return found


def healthy(home: Path, dag: AirflowDag | None = WELL, question: str = "") -> EnvironmentRow:
    write_index(home)
    return replace(model(home, dag, question), words={"healthy": 5, "unmanaged": 1})


def test_an_environment_in_which_nothing_is_wrong_is_well(tmp_path: Path) -> None:
    found = healthy(tmp_path)
    assert end_of(found) == "well"
    text = Seen(environments_page([found])).text
    for words in ("Of 1 environment: 1 well.", "5 healthy", "success", "in 3 days"):
        assert words in text


@pytest.mark.parametrize(
    ("dag", "words"),
    [
        pytest.param(replace(WELL, is_paused=True), "paused", id="paused"),
        pytest.param(replace(WELL, is_gone=True), "DAG gone", id="gone"),
        pytest.param(replace(WELL, next_run_at=now() - timedelta(hours=2)), "run overdue", id="overdue"),
        pytest.param(replace(WELL, files_fetched_at=now() - timedelta(hours=2)), "files old", id="no fetch"),
        pytest.param(
            replace(WELL, newest=AirflowRun(dag_id=DAG, run_id="later", state="failed", started_at=now())),
            "newest run failed",
            id="failed",
        ),
    ],
)
def test_what_keeps_newer_facts_away_is_named(tmp_path: Path, dag: AirflowDag, words: str) -> None:
    found = healthy(tmp_path, dag)
    assert end_of(found) in ("in trouble", "to look at")
    assert words in Seen(environments_page([found])).text


def test_no_run_is_overdue_while_another_goes_on(tmp_path: Path) -> None:
    going = AirflowRun(dag_id=DAG, run_id="long", state="running", started_at=now())
    found = healthy(tmp_path, replace(WELL, next_run_at=now() - timedelta(hours=2), newest=going))
    assert "overdue" not in Seen(environments_page([found])).text
    assert end_of(found) == "well"


def test_an_environment_that_was_never_read_is_missed(tmp_path: Path) -> None:
    text = Seen(environments_page([model(tmp_path, AirflowDag(dag_id=DAG, has_schedule=False))])).text
    for words in ("Of 1 environment: 1 never read.", "never ran", "when somebody starts it"):
        assert words in text
    assert "never: Airflow has no such DAG" in Seen(environments_page([model(tmp_path, None)])).text


def test_the_worst_comes_first_and_each_count_leads_to_its_topics(tmp_path: Path) -> None:
    well, bad = healthy(tmp_path), model(tmp_path)
    well = replace(well, indexed=replace(well.indexed, environment="a-well-one"))
    html = environments_page([well, bad])
    assert "Of 2 environments: 1 in trouble, 1 well." in Seen(html).text
    assert html.index("topic_pipeline_local") < html.index("topic_pipeline_a-well-one")
    assert 'href="dags/topic_pipeline_local/topics?state=offline"' in html


def test_a_question_that_waits_is_shown_with_its_run(tmp_path: Path) -> None:
    found = healthy(tmp_path, question="3-changes-1.1")
    assert end_of(found) == "to look at"
    assert "dags/topic_approval_local/runs/3-changes-1.1" in environments_page([found])


def test_files_that_airflow_cannot_read_are_no_good_news(tmp_path: Path) -> None:
    assert "Airflow cannot read 2 DAG files" in Seen(environments_page([healthy(tmp_path)], 2)).text
    assert "There is no environment that you may see" in Seen(environments_page([])).text


def test_each_page_says_first_that_a_newer_run_goes_on_or_failed(tmp_path: Path) -> None:
    write_index(tmp_path)

    def texts(run: AirflowRun) -> list[str]:
        dags = {DAG: replace(WELL, newest=run)}
        indexed = read_indexed(tmp_path, "local", lambda _: dags)
        pages = (topics_page(indexed, TopicsWanted()), topic_page(indexed, "shop.orders"), brokers_page(indexed))
        return [Seen(page).text for page in pages]

    same = RUN.partition("/")[2]
    for run, words in (
        (AirflowRun(dag_id=DAG, run_id=same, state="running"), "A run goes on"),
        (AirflowRun(dag_id=DAG, run_id=same, state="failed"), "failed"),
        (AirflowRun(dag_id=DAG, run_id="later", state="failed", started_at=now()), "The newest run,"),
    ):
        assert all(words in text for text in texts(run)), run
    assert not any(
        "The newest run" in text or "goes on" in text for text in texts(replace(run, run_id=same, state="success"))
    )


def test_a_broker_page_says_of_when_it_speaks(tmp_path: Path) -> None:
    write_index(tmp_path)
    assert "At 12:00: 2 brokers registered" in Seen(brokers_page(read_indexed(tmp_path, "local"))).text


def test_a_topic_changed_since_is_not_shown_as_it_was(tmp_path: Path) -> None:
    write_index(tmp_path)
    found = read_indexed(tmp_path, "local")
    later = LaterRun(
        run="topic_pipeline_other/r", environment="other", last_at=now(), outcomes={"a": OutcomeStatus.DONE}
    )
    text = Seen(topics_page(replace(found, later=(later,)), TopicsWanted())).text
    assert all(
        words in text
        for words in ("What follows is older than the changes of", "(other): it sent changes of 1 topic (1 done)")
    )
    broken = replace(found, later_problem="x.jsonl: cannot be read")
    assert (
        "Nobody can say what was changed since: x.jsonl: cannot be read"
        in Seen(topics_page(broken, TopicsWanted())).text
    )


def test_an_unreadable_index_is_trouble_and_not_never_read(tmp_path: Path) -> None:
    indexed = Indexed(home=tmp_path, environment="local", problem="local.sqlite: damaged.", is_unreadable=True)
    assert end_of(EnvironmentRow(indexed=indexed)) == "in trouble"


@pytest.mark.parametrize(
    ("ago", "said"), [(0, "now"), (720, "12 min ago"), (7200, "2 h ago"), (432000, "5 days ago"), (-720, "in 12 min")]
)
def test_an_age_is_said_in_words(ago: int, said: str) -> None:
    assert age(now() - timedelta(seconds=ago)) == said

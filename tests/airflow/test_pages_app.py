"""The pages behind Airflow's own login: its real auth manager and tokens, and the app as the plugin mounts it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urljoin

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from airflow import plugins_manager
from fixtures.rich_plan import NOW, rich_plan, write_run
from fixtures.topic_index import write_index
from topicops.model.plans.plan import GateWord
from topicops.model.runs.memories import Rejection
from topicops.on_airflow.names import PREFIX, RunOf
from topicops.on_airflow.pages import app
from topicops.on_airflow.pages.app import build_app
from topicops.on_airflow.pages.reading import Answered, PlanModel, Question
from topicops.on_airflow.plugin import TopicopsPlugin

pytestmark = pytest.mark.usefixtures("airflow_database")

DAG, RUN = "topic_pipeline_local", "manual__2024-05-01T12:00:00+00:00"
NOTHING = ("This run has made no plan", "No quality rule has been evaluated", "This is no DAG of topicops")
TOPICS_PAGES = ("topics", "topic?name=shop.orders", "brokers", "broker?id=3")
PAGES = (f"{PREFIX}/dags/{DAG}/plan", f"{PREFIX}/dags/{DAG}/quality")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    write_run(home, DAG, RUN, plan=rich_plan())
    write_run(home, "topic_pipeline_other", "secret", plan=rich_plan())
    write_index(home)
    write_index(home, "other")
    write_run(home, "cli", "20240501T120000Z-1a2b3c", plan=rich_plan())
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[TestClient]:
    """Mounted as Airflow's API server mounts it."""
    from airflow.api_fastapi.app import create_auth_manager

    create_auth_manager().init()
    outer = FastAPI()
    outer.mount(PREFIX, build_app(lambda: home))
    with TestClient(outer) as client:
        yield client


def token_of(role: str) -> str:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    return str(get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role)))


def test_nobody_sees_anything_without_a_login(server: TestClient, home: Path) -> None:
    routes = build_app(lambda: home).routes
    paths = [route.path.format(dag_id=DAG, name="pages.css") for route in routes if isinstance(route, APIRoute)]
    assert len(paths) == len(routes) == 9
    answers = [server.get(f"{PREFIX}{path}", params=params) for path in paths for params in ({}, {"run_id": RUN})]
    assert {answer.status_code for answer in answers} == {401}
    assert all(DAG not in answer.text and "topic" not in answer.text for answer in answers)


def test_a_forged_token_is_no_login(server: TestClient) -> None:
    headers = {"Authorization": f"Bearer {token_of('admin')[:-4]}AAAA"}
    assert server.get(PAGES[0], params={"run_id": RUN}, headers=headers).status_code in (401, 403)


@pytest.mark.parametrize("role", ["viewer", "admin"])
@pytest.mark.parametrize("page", PAGES)
def test_who_may_read_the_runs_of_a_dag_sees_its_pages(server: TestClient, page: str, role: str) -> None:
    answer = server.get(page, params={"run_id": RUN}, headers={"Authorization": f"Bearer {token_of(role)}"})
    assert answer.status_code == 200
    assert RUN in answer.text
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(("name", "kind"), [("pages.css", "text/css"), ("pages.js", "text/javascript")])
def test_the_stylesheet_and_the_script_come_from_the_page_s_own_folder(
    server: TestClient, name: str, kind: str
) -> None:
    headers = {"Authorization": f"Bearer {token_of('viewer')}"}
    answer = server.get(f"{PREFIX}/dags/{DAG}/static/{name}", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith(kind)
    assert server.get(f"{PREFIX}/dags/{DAG}/static/..%2Fapp.py", headers=headers).status_code == 404


@pytest.mark.parametrize(
    ("dag_id", "run_id"),
    [
        pytest.param(DAG, "../topic_pipeline_other/secret", id="the folder beside it"),
        pytest.param(DAG, "..%2Ftopic_pipeline_other%2Fsecret", id="and encoded once more"),
        pytest.param(DAG, "../../topic_pipeline_other/secret", id="further up"),
        pytest.param(DAG, ".", id="the dag's own folder"),
        pytest.param(DAG, "", id="no run at all"),
        pytest.param(DAG, "secret", id="another dag's run"),
        pytest.param(DAG, "a\x00b", id="a zero byte"),
        pytest.param("cli", "20240501T120000Z-1a2b3c", id="a run of the command line"),
        pytest.param("~", RUN, id="any dag"),
        pytest.param("..", RUN, id="a dag that is a step up"),
        pytest.param("topic_pipeline_..", RUN, id="an environment that is a step up"),
    ],
)
def test_a_page_shows_that_run_of_that_dag_or_nothing(server: TestClient, dag_id: str, run_id: str) -> None:
    for page in ("plan", "quality"):
        answer = server.get(
            f"{PREFIX}/dags/{dag_id.replace('.', '%2E')}/{page}",
            params={"run_id": run_id, "dag_id": "topic_pipeline_other"},
            headers={"Authorization": f"Bearer {token_of('viewer')}"},
        )
        assert answer.status_code == 404 or any(words in answer.text for words in NOTHING)
        assert "payments.orders" not in answer.text
        assert "What must hold" not in answer.text


@pytest.mark.parametrize("role", ["viewer", "user", "op", "admin"])
@pytest.mark.parametrize("page", TOPICS_PAGES)
def test_who_may_read_the_runs_of_a_pipeline_sees_the_topics_of_its_environment(
    server: TestClient, page: str, role: str
) -> None:
    answer = server.get(f"{PREFIX}/dags/{DAG}/{page}", headers={"Authorization": f"Bearer {token_of(role)}"})
    assert answer.status_code == 200
    assert "local" in answer.text
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


def test_no_page_shows_where_the_folder_is_on_the_server(server: TestClient, home: Path) -> None:
    (home / "history").mkdir()
    (home / "history/local.jsonl").write_text("{", encoding="utf-8")
    headers = {"Authorization": f"Bearer {token_of('viewer')}"}
    pages = [f"{PREFIX}/dags/{DAG}/{page}" for page in TOPICS_PAGES] + [f"{PREFIX}/topics"]
    answers = [server.get(page, headers=headers) for page in pages]
    answers += [server.get(page, params={"run_id": RUN}, headers=headers) for page in PAGES]
    assert [answer.url for answer in answers if str(home) in answer.text] == []


@pytest.mark.parametrize("may", [True, False])
def test_who_may_not_read_the_approval_dag_sees_no_person_and_no_comment(
    server: TestClient, monkeypatch: pytest.MonkeyPatch, *, may: bool
) -> None:
    plan = rich_plan()
    held = [gated.digest for gated in plan.changes if gated.gate is GateWord.HELD]
    answer = Answered(by="bob (id 2)", at=NOW, comment="after the freeze", approved=frozenset(held[:1]))
    question = Question(dag_id="topic_approval_local", run_id="r", answer=answer)
    rejected = {digest: Rejection(by="carol (id 7)", at=NOW, run="x/y", comment="never") for digest in held[1:]}
    model = PlanModel(run=RunOf(dag_id=DAG, run_id=RUN), plan=plan, question=question, rejections=rejected)
    monkeypatch.setattr(app, "read_plan", lambda _home, _run: model)
    monkeypatch.setattr(app, "may_read", lambda dag_id, _user: may or dag_id != "topic_approval_local")
    headers = {"Authorization": f"Bearer {token_of('viewer')}"}
    page = server.get(PAGES[0], params={"run_id": RUN}, headers=headers).text
    assert [word in page for word in ("bob", "after the freeze", "carol", "never")] == [may] * 4
    assert "approved by" in page


def test_a_dag_of_somebody_else_has_no_topics(server: TestClient) -> None:
    headers = {"Authorization": f"Bearer {token_of('viewer')}"}
    answers = [server.get(f"{PREFIX}/dags/{dag}/topics", headers=headers) for dag in ("cli", "topic_pipeline_%2E%2E")]
    assert answers[0].status_code == 404
    assert all("shop.orders" not in answer.text for answer in answers)


@pytest.mark.parametrize("query", ["broker=-1", "first=-5", "first=x", "order=no%20such"])
def test_an_address_that_was_typed_wrongly_is_no_traceback(server: TestClient, query: str) -> None:
    answer = server.get(
        f"{PREFIX}/dags/{DAG}/topics?{query}", headers={"Authorization": f"Bearer {token_of('viewer')}"}
    )
    assert answer.status_code in (200, 422)


def test_the_page_of_all_environments_leads_to_those_that_the_reader_may_read(server: TestClient) -> None:
    answer = server.get(f"{PREFIX}/topics", headers={"Authorization": f"Bearer {token_of('viewer')}"})
    assert answer.status_code == 200
    assert [name in answer.text for name in ("topic_pipeline_local/topics", "topic_pipeline_other/topics")] == [
        True
    ] * 2


def test_the_plugin_mounts_the_pages_and_its_tabs_lead_to_them() -> None:
    (mounted,) = TopicopsPlugin.fastapi_apps
    assert mounted["url_prefix"] == PREFIX
    outer = FastAPI()
    outer.mount(PREFIX, mounted["app"])
    views = {(view["name"], view["destination"]): view["href"] for view in TopicopsPlugin.external_views}
    assert set(views) == {("Topics: plan", "dag_run"), ("Topics: quality", "dag_run"), ("Topics", "nav")}
    with TestClient(outer) as client:
        for href in views.values():
            assert client.get(href.format(DAG_ID=DAG, RUN_ID=RUN)).status_code == 401


def test_a_tab_is_there_for_our_own_dags_alone_where_airflow_can_say_so() -> None:
    tabs = [view for view in TopicopsPlugin.external_views if view["destination"] == "dag_run"]
    assert [view["applies_to"] for view in tabs] == [{"dag.tags.name": ["topicops"]}] * 2
    if hasattr(plugins_manager, "_validate_applies_to"):  # 3.4: what it cannot use, it would leave out, or show on all
        for view in tabs:
            assert plugins_manager._validate_applies_to("topicops", dict(view), "external view")
            assert plugins_manager._describe_applies_to_path_error("dag.tags.name", "dag") is None
        assert plugins_manager._describe_applies_to_path_error("dag.tag.name", "dag"), "a wrong path is seen"


def test_below_a_path_every_tab_and_every_link_stays_below_it(server: TestClient) -> None:
    company = FastAPI()
    company.mount("/airflow", server.app)
    base = "http://testserver/airflow/"  # as in <base> of Airflow's own page
    ids = {"DAG_ID": DAG, "RUN_ID": quote(RUN, safe="")}
    tabs = [urljoin(base, str(view["href"]).format(**ids)) for view in TopicopsPlugin.external_views]
    pages = [*tabs, *(f"{base}{PREFIX[1:]}/dags/{DAG}/{page}" for page in TOPICS_PAGES)]
    with TestClient(company, headers={"Authorization": f"Bearer {token_of('viewer')}"}) as client:
        for page in pages:
            answer = client.get(page)
            assert answer.status_code == 200, page
            found = re.findall(r'(?:href|src|data-api|data-address)="([^"]*)"', answer.text)
            links = [urljoin(page, link) for link in found]
            assert links
            assert [link for link in links if "//testserver/" in link and not link.startswith(base)] == []


def test_every_tab_has_a_route_of_its_own() -> None:
    routes = [view["url_route"] for view in TopicopsPlugin.external_views]
    assert len(set(routes)) == len(routes)

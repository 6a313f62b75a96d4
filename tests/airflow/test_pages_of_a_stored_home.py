"""Pages of a second host: with a home in an object store they show the runs of the first one."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from fakes.builders import NOW
from fixtures.live import until
from fixtures.rich_plan import rich_plan, write_run
from fixtures.stores import lead_to, memory_home, s3_home, s3_variables
from fixtures.topic_index import write_index
from topicops.edges.home.memories import NEWEST_GOOD
from topicops.edges.object_store import open_bucket
from topicops.edges.places import home_at
from topicops.model.runs.memories import NewestGood
from topicops.on_airflow.names import PREFIX, place_of
from topicops.on_airflow.pages.app import build_app

pytestmark = pytest.mark.usefixtures("airflow_database")

DAG, RUN = "topic_pipeline_local", "manual__2024-05-01T12:00:00+00:00"


def test_a_second_host_shows_the_runs_of_the_first(
    s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.app import create_auth_manager, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    first = s3_home(s3_server)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "first"))
    write_run(first, DAG, RUN, plan=rich_plan())
    write_index(first)

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "second"))
    for name, value in s3_variables(s3_server).items():
        monkeypatch.setenv(name, value)
    open_bucket.cache_clear()
    create_auth_manager().init()
    user = SimpleAuthManagerUser(username="viewer", role="viewer")
    headers = {"Authorization": f"Bearer {get_auth_manager().generate_jwt(user)}"}
    outer = FastAPI()
    outer.mount(PREFIX, build_app(lambda: home_at(first.bucket.url)))
    with TestClient(outer) as client:
        for page, text in {"plan": "shop.", "quality": RUN, "topics": "shop.orders", "topic": "shop.orders"}.items():
            params = {"run_id": RUN, "name": "shop.orders"}
            answer = client.get(f"{PREFIX}/dags/{DAG}/{page}", params=params, headers=headers)
            assert (answer.status_code, text in answer.text) == (200, True), (page, answer.text[:2000])
            assert first.bucket.url not in answer.text
    assert [*(tmp_path / "second").rglob("*.sqlite")]


def test_a_dag_file_knows_from_a_store_when_the_last_good_run_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from topicops.on_airflow.dags.dag_file import gone, silent

    home = memory_home()
    lead_to(monkeypatch, home)
    NEWEST_GOOD.of(home, "local").write(NewestGood(run="topic_pipeline_local/1", at=NOW, topics=place_of(tmp_path)))

    assert [*silent(["local", "never-ran"])] == []
    assert len([*gone([], tmp_path)]) == 1
    monkeypatch.setenv("TOPICOPS_GOOD_RUN_WITHIN", "1s")
    until(lambda: any("no good run since" in sentence for sentence in silent(["local"])), timeout_s=20)

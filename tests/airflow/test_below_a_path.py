"""Airflow below a path of a company's proxy, opened by a real browser: each page is there, and none leads elsewhere."""

from __future__ import annotations

import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import httpx
import pytest

from fixtures.browser import NO_CHROMIUM, Browser, is_installed
from fixtures.rich_plan import rich_plan, write_run
from fixtures.topic_index import write_index
from topicops.features.topic_pages.on_airflow import VIEW
from topicops.on_airflow.names import PLAN_ROUTE, PREFIX, QUALITY_ROUTE
from topicops_local.airflow import LocalAirflow, start_airflow, wait_for_dags
from topicops_local.airflow_client import LocalAirflowClient

_OWN = frozenset({"connection", "content-encoding", "content-length", "host", "transfer-encoding"})
"""Headers that belong to one connection."""


class PathProxy:
    """Passes what is below ``path``, which has no slash at its end, to ``target``, and answers 404 to the rest."""

    def __init__(self, path: str, target: str = "") -> None:
        self.path, self.target = path, target
        self.refused: list[str] = []
        """The paths that it did not pass."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}{path}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def _pass(self) -> None:
                if not self.path.startswith(f"{proxy.path}/"):
                    proxy.refused.append(self.path)
                    self.send_error(404)
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = [(name, text) for name, text in self.headers.items() if name.lower() not in _OWN]
                with httpx.Client(trust_env=False, timeout=60.0) as http:
                    answer = http.request(self.command, f"{proxy.target}{self.path}", headers=headers, content=body)
                self.send_response(answer.status_code)
                for name, text in answer.headers.multi_items():
                    if name.lower() not in _OWN:
                        self.send_header(name, text)
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            do_DELETE = do_GET = do_HEAD = do_PATCH = do_POST = do_PUT = _pass  # noqa: N815  the names of http.server

            def log_message(self, *_: object) -> None:
                """Nothing: a test says what it sees."""

        return Handler


REPOSITORY = Path(__file__).resolve().parents[2]
PIPELINE = "topic_pipeline_local"
TAB = f"iframe[src*='{PREFIX.removeprefix('/')}/']"

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900), pytest.mark.skipif(not is_installed(), reason=NO_CHROMIUM)]


def token_of(airflow: LocalAirflow, url: str) -> str:
    login = {"username": airflow.username, "password": airflow.password}
    with httpx.Client(trust_env=False, timeout=60.0) as http:
        return str(http.post(f"{url}/auth/token", json=login).raise_for_status().json()["access_token"])


def test_below_a_path_a_person_sees_every_page_of_topics(tmp_path: Path) -> None:
    for part in ("airflow", "project/dags", "project/topics/environments"):
        (tmp_path / part).mkdir(parents=True)
    shutil.copy(REPOSITORY / "dags/topicops_dags.py", tmp_path / "project/dags")
    (tmp_path / "project/topics/environments/local.yaml").write_text(": [not YAML\n", encoding="utf-8")
    home = tmp_path / "home"
    with PathProxy("/airflow") as proxy:
        variables = {"AIRFLOW__API__BASE_URL": proxy.url, "TOPICOPS_HOME": str(home)}
        with (
            start_airflow(tmp_path / "airflow", dags=tmp_path / "project/dags", environment=variables) as airflow,
            Browser(tmp_path) as browser,
        ):
            proxy.target = airflow.url
            client = LocalAirflowClient(proxy.url, airflow.username, airflow.password)
            client.sign_in()
            wait_for_dags(client, [PIPELINE])
            run_id = client.trigger(PIPELINE, {})
            write_run(home, PIPELINE, run_id, plan=rich_plan(), failing=("Q11",))
            write_index(home)
            browser.sign_in(f"{proxy.url}/api/v2/version", token_of(airflow, proxy.url))
            run = f"{proxy.url}/dags/{PIPELINE}/runs/{quote(run_id, safe='')}/plugin"

            for url, words in (
                (f"{run}/{PLAN_ROUTE}", "need an approval"),
                (f"{run}/{QUALITY_ROUTE}", "What fails"),
                (f"{proxy.url}/plugin/{VIEW['url_route']}", "local"),
            ):
                browser.open(url)
                browser.frame(TAB)
                browser.wait_for_text(words)
                assert str(browser.run("return document.location.href")).startswith(f"{proxy.url}{PREFIX}/")
                browser.leave_frame()
            browser.frame(TAB)
            browser.click("a[href$='topic_pipeline_local/topics']")
            browser.wait_for_text("8 topics")
            browser.click("a[href='topic?name=shop.items']")
            browser.wait_for_text("Why it is not healthy")
            assert str(browser.run("return document.location.href")).startswith(f"{proxy.url}{PREFIX}/")

    assert [path for path in proxy.refused if PREFIX in path] == []

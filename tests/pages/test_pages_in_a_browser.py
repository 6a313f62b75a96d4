"""What only a browser shows: the page of a run that goes on, and pages in narrow windows. No Airflow is started."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fakes.builders import NOW
from fixtures.browser import NO_CHROMIUM, Browser, is_installed
from fixtures.live import until
from fixtures.rich_plan import rich_plan
from topicops.on_airflow.names import RunOf
from topicops.on_airflow.pages import app
from topicops.on_airflow.pages.plan_page import plan_page
from topicops.on_airflow.pages.reading import Answered, PlanModel, Question

STATIC = Path(str(app.__file__)).parent / "static"
RUN = RunOf(dag_id="topic_pipeline_local", run_id="manual__1")
API = f"/api/v2/dags/{RUN.dag_id}/dagRuns/{RUN.run_id}"
PAGE = f"/topicops/dags/{RUN.dag_id}/plan"
OVERLAPS = """
const boxes = [...document.querySelectorAll(".pill")].map((pill) => [pill, pill.getBoundingClientRect()]);
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
return boxes.flatMap(([one, a], at) => boxes.slice(at + 1).filter(([, b]) => meet(a, b))
  .map(([other]) => one.textContent + " on " + other.textContent));
"""
NARROW_NAMES = """
return [...document.querySelectorAll(".topic")].filter((name) => name.offsetWidth < 100 && name.offsetHeight > 25)
  .map((name) => name.textContent);
"""

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(not is_installed(), reason=NO_CHROMIUM)]


class Airflow(ThreadingHTTPServer):
    """Answers as Airflow's REST API does, and serves one page at its place below it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.state, self.running, self.status = "running", ["snapshot"], 200
        self.html = plan_page(PlanModel(run=RUN))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str) -> tuple[int, str, bytes]:
        tasks = [{"task_id": name, "state": "running"} for name in self.running]
        found: dict[str, object] = {API: {"state": self.state}, f"{API}/taskInstances": {"task_instances": tasks}}
        if path in found:
            return self.status, "application/json", json.dumps(found[path]).encode()
        name = path.rpartition("/static/")[2]
        if name in app.STATIC_FILES:
            return 200, app.STATIC_FILES[name], (STATIC / name).read_bytes()
        return 200, "text/html", self.html.encode()


class _Answers(BaseHTTPRequestHandler):
    server: Airflow

    def do_GET(self) -> None:
        status, kind, body = self.server.answer(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test says what it saw."""


@pytest.fixture
def airflow() -> Iterator[Airflow]:
    with Airflow() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser"), wait_s=30.0) as browser:
        yield browser


def test_the_page_of_a_run_that_goes_on_says_so_and_follows_it_to_its_end(airflow: Airflow, browser: Browser) -> None:
    browser.open(f"{airflow.url}{PAGE}")
    browser.wait_for_text("This run goes on: snapshot runs.")
    airflow.running = ["create"]
    airflow.html = plan_page(PlanModel(run=RUN, plan=rich_plan()))
    browser.wait_for_text("This run goes on: create runs.")
    browser.wait_for_text("Look at these first")
    airflow.state, airflow.running = "success", []
    browser.wait_for(lambda: "This run goes on" not in browser.text, "the end")
    assert browser.console() == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"state": "failed"}, "This run has ended. What follows may be older", id="the run ends"),
        pytest.param({"status": 503}, "Airflow does not say whether this run still goes on", id="no answer"),
    ],
)
def test_a_reader_who_is_busy_is_not_disturbed_and_hears_what_changed(
    airflow: Airflow, browser: Browser, change: dict[str, object], words: str
) -> None:
    airflow.html = plan_page(PlanModel(run=RUN, plan=rich_plan()))
    browser.open(f"{airflow.url}{PAGE}")
    browser.wait_for_text("This run goes on")
    browser.click("details summary")
    for name, value in change.items():
        setattr(airflow, name, value)
    browser.wait_for_text(words)
    assert browser.run("return document.querySelectorAll('details[open]').length") == 1
    browser.console()


def test_in_no_window_do_pills_lie_on_each_other_nor_do_names_break_after_a_few_letters(
    tmp_path: Path, browser: Browser
) -> None:
    plan = rich_plan()
    held = tuple(gated.digest for gated in plan.changes if gated.approvable)
    answer = Answered(by="op (id 2)", at=NOW, rejected=frozenset(held))
    question = Question(dag_id="topic_approval_local", run_id="1", digests=held, answer=answer)
    shutil.copytree(STATIC, tmp_path / "static")
    page = tmp_path / "plan.html"
    page.write_text(plan_page(PlanModel(run=RUN, plan=plan, question=question)), encoding="utf-8")
    browser.open(page.as_uri())
    for width in (400, 600, 660, 720, 800, 1000, 1400):
        browser.resize(width, 900)
        until(lambda width=width: browser.run("return window.innerWidth") == width)
        assert browser.run(OVERLAPS) == [], width
        assert browser.run(NARROW_NAMES) == [], width
        assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth"), width

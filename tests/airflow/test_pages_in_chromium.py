"""The tabs in a real Airflow, opened by a real browser: what is seen, what is refused, and what does not run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from fakes.builders import NOW
from fixtures.any_plan import with_words
from fixtures.browser import NO_CHROMIUM, Browser, is_installed
from fixtures.rich_plan import HOSTILE, rich_plan, write_run
from fixtures.topic_index import write_index
from topicops.edges.home.artifacts import ArtifactStore
from topicops.edges.home.memories import HELD
from topicops.features.topic_pages.on_airflow import VIEW
from topicops.flow.runs.memory import note_answer
from topicops.flow.runs.run import outcomes_file
from topicops.model.plans.changes import GateWord, digest_of
from topicops.model.plans.plan import LoadTable, Plan
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.runs.memories import HeldSet, Rejection
from topicops.model.runs.results import FailingRow, Outcome, OutcomeStatus, QualityReport, quality_file
from topicops.on_airflow.names import PLAN_ROUTE, PREFIX, QUALITY_ROUTE
from topicops_local.airflow import LocalAirflow, start_airflow, wait_for_dags

REPOSITORY = Path(__file__).resolve().parents[2]
PIPELINE = "topic_pipeline_local"
TAB = f"iframe[src*='{PREFIX.removeprefix('/')}/']"
PLAIN_DAG = """
from airflow.sdk import DAG, Param
from airflow.providers.standard.operators.empty import EmptyOperator

FORM = {
    "mode": Param("plan", type=["null", "string"], enum=["plan", None], title="A", section="S", description="d"),
    "only": Param(None, type=["null", "string"], title="B", section="S", description="d"),
    "list": Param([], type=["null", "array"], title="C", section="T", description="d"),
}
with DAG("plain", schedule=None, is_paused_upon_creation=False, params=FORM):
    EmptyOperator(task_id="only")
"""
TOPICS_PAGES = ("topics", "topic?name=shop.items", "brokers", "broker?id=3")
SCREENSHOTS = os.environ.get("TOPICOPS_SCREENSHOTS")
"""Where to keep the pictures, for whoever wants to look at them; else they go with the test's folder."""

AXE = os.environ.get("TOPICOPS_AXE")
needs_axe = pytest.mark.skipif(not AXE, reason="TOPICOPS_AXE names no axe.min.js; it is in the npm package axe-core")

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900), pytest.mark.skipif(not is_installed(), reason=NO_CHROMIUM)]


class Site:
    """An Airflow with one healthy run, one that is held, one with failing rules, one hostile and one with nothing."""

    def __init__(self, airflow: LocalAirflow, home: Path, pictures: Path) -> None:
        self.airflow = airflow
        self.home = home
        self.pictures = pictures
        self.http = httpx.Client(base_url=airflow.url, trust_env=False, timeout=60.0)
        self.client = airflow.client()
        wait_for_dags(self.client, [PIPELINE, "plain"])
        self._pause()
        self.healthy, self.held, self.failing, self.hostile, self.bare = (self.run_of(PIPELINE) for _ in range(5))
        self.rejected, self.failed = (self.run_of(PIPELINE) for _ in range(2))
        self.plain = self.run_of("plain")
        self._write()

    def _pause(self) -> None:
        """The runs are there to be looked at; nothing of them shall run."""
        headers = {"Authorization": f"Bearer {self.token('admin')}"}
        for dag_id in (PIPELINE, "plain"):
            answer = self.http.patch(f"/api/v2/dags/{dag_id}", headers=headers, json={"is_paused": True})
            answer.raise_for_status()

    def run_of(self, dag_id: str) -> str:
        return self.client.trigger(dag_id, {})

    def _write(self) -> None:
        held = rich_plan()
        for n in range(20):
            rules = {4: ("Q12",), 11: ("Q11", "Q12"), 12: ("Q11",)}.get(n, ())
            write_run(self.home, PIPELINE, f"scheduled__{n}", failing=rules, checked_at=NOW - timedelta(hours=30 - n))
        nothing = replace(held.change_set, changes=(), blocked=(), load=LoadTable())
        healthy = replace(held, change_set=nothing, changes=())
        write_run(self.home, PIPELINE, self.healthy, plan=healthy)
        write_run(self.home, PIPELINE, self.held, plan=held, suites=("before",))
        write_run(self.home, PIPELINE, self.failing, plan=held, failing=("Q11", "Q12", "Q16"))
        addresses = {gated.digest: gated.change.address for gated in held.changes if gated.approvable}
        HELD.of(self.home, "local").write(HeldSet(addresses=addresses, found_by=f"{PIPELINE}/{self.held}"))
        self._write_hostile(write_run(self.home, PIPELINE, self.hostile, failing=("Q11",)))
        self._write_rejected()
        self._write_failed()
        write_index(self.home)

    def _write_rejected(self) -> None:
        plan = of_another_cluster(rich_plan())
        write_run(self.home, PIPELINE, self.rejected, plan=plan)
        held = {gated.digest for gated in plan.with_gate(GateWord.HELD)}
        no = Rejection(by="op (id 2)", at=NOW, run="topic_approval_local/1", comment="still read by the shop")
        note_answer(self.home, "local", no, rejected=held, approved=())

    def _write_failed(self) -> None:
        store = write_run(self.home, PIPELINE, self.failed, plan=rich_plan(), failing=("Q11",))
        for gated in rich_plan().with_gate(GateWord.RUN):
            outcome = Outcome.of(gated, OutcomeStatus.FAILED, "the broker answered POLICY_VIOLATION: no")
            store.write_value(outcomes_file(gated.change.action), (outcome,))

    def _write_hostile(self, store: ArtifactStore) -> None:
        name = quality_file("after")
        report = store.read_value(name, QualityReport)
        rows = (FailingRow(row={HOSTILE: HOSTILE}),)
        results = tuple(replace(result, title=HOSTILE, runbook=HOSTILE, examples=rows) for result in report.results)
        store.write_value(name, replace(report, results=results, environment=HOSTILE, cluster_id=HOSTILE))
        store.write_text("plan.json", hostile_plan())

    def token(self, role: str) -> str:
        passwords = json.loads((self.airflow.folder / "passwords.json").read_text(encoding="utf-8"))
        answer = self.http.post("/auth/token", json={"username": role, "password": passwords[role]})
        return str(answer.raise_for_status().json()["access_token"])

    def page(self, page: str, run_id: str, dag_id: str = PIPELINE) -> str:
        return f"{self.airflow.url}{PREFIX}/dags/{dag_id}/{page}?run_id={quote(run_id, safe='')}"

    def topics(self, page: str = "topics") -> str:
        return f"{self.airflow.url}{PREFIX}/dags/{PIPELINE}/{page}"

    def tab(self, route: str, run_id: str, dag_id: str = PIPELINE) -> str:
        return f"{self.airflow.url}/dags/{dag_id}/runs/{quote(run_id, safe='')}/plugin/{route}"


def hostile_plan() -> str:
    """Return the file of a plan in which every word is hostile."""
    return plan_to_json(sealed(with_words(rich_plan(), lambda text: f"{text}{HOSTILE}")))


def of_another_cluster(plan: Plan) -> Plan:
    """Return the same plan with digests of its own."""
    target = replace(plan.target, cluster_id="another")
    return sealed(replace(plan, change_set=replace(plan.change_set, target=target)))


def sealed(plan: Plan) -> Plan:
    """With the digests that the gate would give."""
    changes = tuple(replace(gated, digest=digest_of(gated.change, plan.target)) for gated in plan.changes)
    return replace(plan, changes=changes)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("pages")
    for part in ("airflow", "project/dags", "project/topics/environments"):
        (folder / part).mkdir(parents=True)
    shutil.copy(REPOSITORY / "dags/topicops_dags.py", folder / "project/dags")
    (folder / "project/dags/plain.py").write_text(PLAIN_DAG, encoding="utf-8")
    (folder / "project/topics/environments/local.yaml").write_text(": [not YAML\n", encoding="utf-8")
    variables = {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
        "TOPICOPS_HOME": str(folder / "home"),
    }
    pictures = Path(SCREENSHOTS) if SCREENSHOTS else folder / "screenshots"
    with start_airflow(
        folder / "airflow", dags=folder / "project/dags", environment=variables, timeout_s=400.0
    ) as airflow:
        yield Site(airflow, folder / "home", pictures)


@pytest.fixture
def browser(site: Site, tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path) as browser:
        browser.resize(1400, 1100)
        yield browser


def as_role(browser: Browser, site: Site, role: str) -> None:
    browser.sign_in(f"{site.airflow.url}/api/v2/version", site.token(role))


def test_the_plugin_is_loaded_and_no_route_answers_without_a_login(site: Site) -> None:
    pages = ("plan?run_id=x", "quality?run_id=x", "static/pages.css", "static/pages.js", *TOPICS_PAGES)
    for path in (*(f"dags/{PIPELINE}/{page}" for page in pages), "topics"):
        answer = site.http.get(f"{PREFIX}/{path}")
        assert answer.status_code == 401
        assert "topic_" not in answer.text


def test_a_viewer_can_look_and_do_nothing(site: Site) -> None:
    headers = {"Authorization": f"Bearer {site.token('viewer')}"}
    assert site.http.get(site.page("plan", site.held), headers=headers).status_code == 200
    assert site.http.post(site.page("plan", site.held), headers=headers).status_code == 405
    ask = {"logical_date": None, "conf": {}}
    asked = site.http.post("/api/v2/dags/topic_approval_local/dagRuns", headers=headers, json=ask)
    assert asked.status_code == 403
    question = "/api/v2/dags/topic_approval_local/dagRuns/any/taskInstances/approve/-1/hitlDetails"
    answered = site.http.patch(question, headers=headers, json={"chosen_options": ["Approve"], "params_input": {}})
    assert answered.status_code == 403


def see(browser: Browser, site: Site, url: str, words: str, picture: str) -> None:
    """Open a tab, wait until it says so, and find no word of its in the console."""
    browser.open(url)
    browser.frame(TAB)
    browser.wait_for_text(words)
    browser.leave_frame()
    browser.screenshot(site.pictures / f"{picture}.png")
    assert [line for line in browser.console() if PREFIX in line] == [], picture


@pytest.mark.parametrize("role", ["admin", "viewer"])
def test_each_tab_shows_its_run_to_whoever_may_read_it(site: Site, browser: Browser, role: str) -> None:
    as_role(browser, site, role)
    plan = site.tab(PLAN_ROUTE, site.held)
    see(browser, site, plan, "2 changes need an approval", f"plan-held-{role}")
    see(browser, site, site.tab(QUALITY_ROUTE, site.failing), "What fails", f"quality-failing-{role}")
    see(browser, site, site.tab(PLAN_ROUTE, site.rejected), "rejected by op (id 2)", f"plan-rejected-{role}")
    see(browser, site, site.tab(PLAN_ROUTE, site.failed), "POLICY_VIOLATION", f"plan-failed-{role}")


def test_a_run_of_which_there_is_little_to_say_has_plain_tabs(site: Site, browser: Browser) -> None:
    as_role(browser, site, "viewer")
    see(browser, site, site.tab(PLAN_ROUTE, site.healthy), "No changes.", "plan-healthy")
    see(browser, site, site.tab(QUALITY_ROUTE, site.healthy), "rules hold.", "quality-healthy")
    see(browser, site, site.tab(QUALITY_ROUTE, site.held), "Not evaluated, or not yet.", "quality-before-only")
    see(browser, site, site.tab(PLAN_ROUTE, site.bare), "This run has made no plan", "plan-nothing-yet")
    see(browser, site, site.tab(QUALITY_ROUTE, site.bare), "No quality rule has been", "quality-nothing-yet")
    another = site.tab(PLAN_ROUTE, site.plain, "plain")
    see(browser, site, another, "This is no DAG of topicops", "plan-of-another-dag")


def test_hostile_words_are_shown_and_nothing_of_them_runs(site: Site, browser: Browser) -> None:
    as_role(browser, site, "admin")
    for page in ("plan", "quality"):
        browser.open(site.page(page, site.hostile))
        browser.wait_for_text("<script>document.title='run'</script>")
        assert browser.run("return document.title") != "run"
        assert browser.run("return document.images.length") == 0
        assert browser.run("return document.scripts.length") == 1
        assert browser.console() == []
        browser.screenshot(site.pictures / f"hostile-{page}.png")


def test_the_policy_stops_what_would_slip_through(site: Site, browser: Browser) -> None:
    as_role(browser, site, "viewer")
    browser.open(site.page("plan", site.held))
    browser.run(
        "const s = document.createElement('script'); s.textContent = \"document.title='run'\";"
        "document.body.append(s);"
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')"
    )
    browser.wait_for(lambda: any("Content Security Policy" in line for line in browser.console()), "a refusal")
    assert browser.run("return document.title").startswith("Plan of")


def test_the_tab_follows_airflow_into_the_dark(site: Site, browser: Browser) -> None:
    as_role(browser, site, "viewer")
    browser.open(site.tab(PLAN_ROUTE, site.held))
    browser.frame(TAB)
    browser.wait_for_text("need an approval")
    browser.leave_frame()
    colours = []
    for theme in ("light", "dark"):
        browser.run(f"document.documentElement.className = '{theme}'")
        browser.frame(TAB)
        browser.wait_for(lambda theme=theme: theme in browser.run("return document.documentElement.className"), theme)
        colours.append(browser.run("return getComputedStyle(document.body).backgroundColor"))
        browser.leave_frame()
        browser.screenshot(site.pictures / f"plan-{theme}.png")
    assert colours[0] != colours[1]


def test_a_link_to_a_change_marks_its_row_and_a_tile_shows_what_it_counts(site: Site, browser: Browser) -> None:
    as_role(browser, site, "viewer")
    gated = next(gated for gated in rich_plan().changes if gated.approvable)
    browser.open(f"{site.page('plan', site.held)}#change-{gated.digest[:12]}")
    browser.wait_for_text(gated.change.topic)
    assert browser.run("return document.querySelector('tr:target .topic').textContent") == gated.change.topic
    browser.click(".tile a[href$='state=skipped']")
    browser.wait_for_text("1 of 5 changes shown")
    assert browser.console() == []


def test_a_square_of_the_strip_leads_to_its_run(site: Site, browser: Browser) -> None:
    as_role(browser, site, "viewer")
    browser.open(site.tab(QUALITY_ROUTE, site.failing))
    browser.frame(TAB)
    browser.click(".strip a[href$='scheduled__11']")
    browser.wait_for_text("scheduled__11")
    assert "Q11" in browser.text


def test_from_airflow_s_bar_a_viewer_comes_to_a_topic_and_to_the_broker_that_it_lacks(
    site: Site, browser: Browser
) -> None:
    as_role(browser, site, "viewer")
    browser.open(f"{site.airflow.url}/plugin/{VIEW['url_route']}")
    browser.frame(TAB)
    browser.click("a[href$='topic_pipeline_local/topics']")
    browser.wait_for_text("8 topics")
    browser.leave_frame()
    browser.screenshot(site.pictures / "topics-in-airflow.png")
    browser.frame(TAB)
    browser.click("a[href='topic?name=shop.items']")
    browser.wait_for_text("broker 3 (not registered) is not in the ISR")
    browser.click("a[href='broker?id=3']")
    browser.wait_for_text("What is missing because of it")
    browser.leave_frame()
    browser.screenshot(site.pictures / "broker-in-airflow.png")
    assert [line for line in browser.console() if PREFIX in line] == []


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("topics", "8 topics"),
        ("topics?state=held", "1 of 8 topics"),
        ("topics?broker=3&state=under-replicated", "1 of 8 topics"),
        ("topics?q=no-such", "No topic is like that."),
        ("topic?name=shop.items", "Why it is not healthy"),
        ("topic?name=shop.moved", "What the plan has about it"),
        ("topic?name=no.such", "Neither the cluster nor a file"),
        ("brokers", "2 brokers registered"),
        ("broker?id=3", "not registered"),
    ],
)
def test_each_topics_page_has_an_address_of_its_own(site: Site, browser: Browser, page: str, words: str) -> None:
    as_role(browser, site, "viewer")
    browser.open(site.topics(page))
    browser.wait_for_text(words)
    browser.screenshot(site.pictures / f"{''.join(letter if letter.isalnum() else '-' for letter in page)}.png")
    assert browser.console() == []


def test_words_typed_into_the_search_become_the_address(site: Site, browser: Browser) -> None:
    as_role(browser, site, "viewer")
    browser.open(site.topics())
    browser.wait_for_text("8 topics")
    browser.run("const f = document.getElementById('search'); f.value = 'shop'; f.dispatchEvent(new Event('change'))")
    browser.wait_for_text("6 of 8 topics")
    assert browser.address == site.topics("topics?q=shop")


def test_a_topic_s_name_in_the_plan_leads_to_its_page(site: Site, browser: Browser) -> None:
    as_role(browser, site, "viewer")
    browser.open(site.page("plan", site.held))
    browser.click("a.topic[href^='topic?name=']")
    browser.wait_for_text("all environments")
    assert f"{PREFIX}/dags/{PIPELINE}/topic?name=" in browser.address
    assert browser.console() == []


def test_the_topics_pages_have_a_dark_side(site: Site, browser: Browser) -> None:
    as_role(browser, site, "viewer")
    for page in ("topics", "topic?name=shop.items", "broker?id=3"):
        browser.open(site.topics(page))
        browser.run("document.documentElement.className = 'dark'")
        dark = browser.run("return getComputedStyle(document.body).backgroundColor")
        browser.screenshot(site.pictures / f"dark-{page[:5]}.png")
        browser.run("document.documentElement.className = 'light'")
        assert dark != browser.run("return getComputedStyle(document.body).backgroundColor")


@needs_axe
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_breaks_a_rule_of_wcag(site: Site, browser: Browser, theme: str) -> None:
    axe = Path(AXE or "").read_text(encoding="utf-8")
    as_role(browser, site, "admin")
    browser.prefer(theme)
    runs = [site.page("plan", site.held), site.page("plan", site.failed), site.page("quality", site.failing)]
    pages = [*runs, *map(site.topics, TOPICS_PAGES), f"{site.airflow.url}{PREFIX}/topics"]
    for page in pages:
        browser.open(page)
        assert browser.violations(axe) == [], page


@needs_axe
@pytest.mark.parametrize("dag_id", [PIPELINE, "topic_approval_local"])
def test_no_text_of_the_form_breaks_a_rule_of_wcag_that_airflow_s_own_form_keeps(
    site: Site, browser: Browser, dag_id: str
) -> None:
    axe = Path(AXE or "").read_text(encoding="utf-8")
    as_role(browser, site, "admin")
    rules = {name: {line.partition(":")[0] for line in form_violations(browser, site, name, axe)}
             for name in ("plain", dag_id)}  # fmt: skip
    assert rules[dag_id] - rules["plain"] == set()


SECTIONS = "document.querySelectorAll('[role=dialog] [data-part=item-trigger]')"


def form_violations(browser: Browser, site: Site, dag_id: str, axe: str) -> list[str]:
    browser.open(f"{site.airflow.url}/dags/{dag_id}")
    browser.wait_for_text("Trigger")
    browser.run("[...document.querySelectorAll('button')].find(b => b.innerText.trim() == 'Trigger').click()")
    browser.wait_for(lambda: browser.run("return !!document.querySelector('[role=dialog]')"), "the form")
    browser.wait_for_text("Advanced Options")
    found = browser.violations(axe, "[role=dialog]")
    for nr in range(browser.run(f"return {SECTIONS}.length")):
        found += violations_of_section(browser, axe, f"{SECTIONS}[{nr}]")
        browser.screenshot(site.pictures / f"form-{dag_id}-{nr}.png")
    return found


def violations_of_section(browser: Browser, axe: str, section: str) -> list[str]:
    """Open the section first. Airflow wants the focus there before the click, and may close the one before."""
    is_open = f"{section}.getAttribute('aria-expanded') == 'true'"
    click_if_closed = f"if ({is_open}) return true; {section}.focus(); {section}.click()"
    browser.wait_for(lambda: browser.run(click_if_closed), "the section")
    return browser.violations(axe, "[role=dialog]")

"""The client of Airflow's API: what is asked again, and what is not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from topicops.features.shared.airflow_client import AirflowClient, AirflowError, NoSuchInAirflowError
from topicops_local.airflow_client import LocalAirflowClient


@dataclass
class Server:
    """Answers with these statuses, one after the other; the last one again and again."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    asked: int = 0
    answer: str = '{"dag_run_id": "r", "state": "success"}'


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            found.asked += 1
            status = found.statuses.pop(0) if len(found.statuses) > 1 else found.statuses[0]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(found.answer.encode())

        do_GET = do_POST = _answer  # noqa: N815 - http.server looks for these names

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        found.url = f"http://127.0.0.1:{running.server_address[1]}"
        yield found
        running.shutdown()


def test_a_fault_of_airflow_in_the_middle_of_a_run_is_waited_out(server: Server) -> None:
    server.statuses = [502, 503, 200]

    assert AirflowClient(server.url, token="t", patience_s=30.0).run_state("d", "r") == "success"
    assert server.asked == 3


@pytest.mark.parametrize(("status", "kind"), [(404, NoSuchInAirflowError), (403, AirflowError)])
def test_a_refusal_is_not_asked_again(server: Server, status: int, kind: type[AirflowError]) -> None:
    server.statuses = [status]

    with pytest.raises(kind, match=f"Airflow refused GET .*: {status}"):
        AirflowClient(server.url, token="t", patience_s=30.0).run_state("d", "r")
    assert server.asked == 1


def test_a_run_is_never_started_twice_by_one_call(server: Server) -> None:
    server.statuses = [503]

    with pytest.raises(AirflowError, match="Airflow refused POST"):
        AirflowClient(server.url, token="t", patience_s=30.0).trigger("d", {})
    assert server.asked == 1


def test_the_pages_of_a_plugin_in_the_left_bar_are_found_and_tabs_are_none(server: Server) -> None:
    tab = {"name": "Plan", "destination": "dag_run", "url_route": "topicops-plan"}
    page = {"name": "Topics", "destination": "nav", "url_route": "topicops-topics"}
    plugins = [{"name": "topicops", "external_views": [tab, page]}, {"name": "other", "external_views": [page]}]
    server.statuses, server.answer = [200], json.dumps({"plugins": plugins})

    pages = LocalAirflowClient(server.url, token="t").pages_in_the_bar("topicops")

    assert pages == {"Topics": f"{server.url}/plugin/topicops-topics"}


def test_a_run_is_followed_only_while_what_is_asked_each_time_is_well(server: Server) -> None:
    server.statuses, server.answer = [200], '{"dag_run_id": "r", "state": "running", "task_instances": []}'

    def scheduler_has_ended() -> None:
        raise AirflowError("the scheduler has ended")

    with pytest.raises(AirflowError, match="the scheduler has ended"):
        list(AirflowClient(server.url, token="t").follow("d", "r", timeout_s=30, each_time=scheduler_has_ended))

"""What the admin client asks of the client library, without a broker."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

from topicops.edges.kafka.admin import cluster_id_of


def test_a_client_without_a_question_for_the_cluster_id_describes_the_cluster() -> None:
    described: Future[SimpleNamespace] = Future()
    described.set_result(SimpleNamespace(cluster_id="of the description"))
    asked = []
    old = SimpleNamespace(describe_cluster=lambda **options: asked.append(options) or described)
    new = SimpleNamespace(cluster_id=lambda timeout: f"asked within {timeout} s")
    assert cluster_id_of(old, timeout_s=1.0) == "of the description"
    assert asked == [{"request_timeout": 1.0}]
    assert cluster_id_of(new, timeout_s=1.0) == "asked within 1.0 s"

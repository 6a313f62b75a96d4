"""What a step learns of a real cluster whose answers are odd, without a broker."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fakes.builders import live_topic
from topicops.features.moves.edges.cluster import BROKER_CONFIGS, KafkaMoveCluster, rates_in_zookeeper
from topicops.features.moves.edges.requests import Operation
from topicops.features.moves.record import LEADER_LIST
from topicops.features.moves.stepping import open_cluster
from topicops.model.cluster.snapshot import TopicTraces
from topicops.model.errors import ClusterError, UndecodableZnodeError, WrongTargetError
from topicops.model.specs.environment import Cluster, Environment, EnvironmentSpec


def test_a_cluster_all_of_whose_brokers_have_lost_their_sessions_is_no_crash() -> None:
    traces = TopicTraces(live=live_topic("a"), has_config_znode=False, is_deleting=False)
    reader: Any = SimpleNamespace(brokers=dict, traces=lambda names, states: dict.fromkeys(names, traces))
    cluster = KafkaMoveCluster({}, reader, cast("Any", None))

    for ask in (lambda: cluster.topics(["a"]), lambda: cluster.require_rights(["a"])):
        with pytest.raises(ClusterError, match="no broker is live"):
            ask()


@pytest.mark.parametrize("movers", ["of-the-reader", "another", None], ids=["the same", "another", "not told"])
def test_a_mover_whose_brokers_are_of_another_cluster_than_the_one_that_is_read_is_refused(
    movers: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = SimpleNamespace(cluster_id=lambda: movers)

    class Connections:
        close = staticmethod(lambda: None)

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def __call__(self) -> object:
            return connections

    monkeypatch.setattr("topicops.features.moves.edges.cluster.Reconnecting", Connections)
    environment = Environment(name="local", spec=EnvironmentSpec(cluster=Cluster(cluster_class="sandbox")), file="l")
    access: Any = SimpleNamespace(kafka=lambda _: {}, environment=environment, broker_views=nullcontext)
    reader: Any = SimpleNamespace(cluster_id=lambda: "of-the-reader")
    expected = nullcontext() if movers == "of-the-reader" else pytest.raises(WrongTargetError, match="nothing was sent")

    with expected, open_cluster(access, reader):
        pass


class Brokers:
    """Connections to brokers that have these throttle lists of leaders; the first one is asked to change them."""

    def __init__(self, lists: Mapping[int, str]) -> None:
        self.lists = lists
        self.edits: list[tuple[int, str | None]] = []

    def controller(self) -> int:
        return min(self.lists)

    def known(self) -> list[int]:
        return [*self.lists]

    def ask(self, requests: Mapping[int, Any], *, timeout_s: float) -> dict[int, Any]:
        return {broker: self._answer(broker, request) for broker, request in requests.items()}

    def _answer(self, broker: int, request: Any) -> Any:
        if request.name == "DescribeConfigsRequest":
            configs = [SimpleNamespace(name=LEADER_LIST, value=self.lists[broker])]
            return SimpleNamespace(results=[SimpleNamespace(error_code=0, error_message="", configs=configs)])
        [resource] = request.resources
        self.edits += [(edit.config_operation, edit.value) for edit in resource.configs]
        return SimpleNamespace(responses=[SimpleNamespace(resource_name="a", error_code=0, error_message="")])


@pytest.mark.parametrize(
    ("lists", "edits"),
    [
        pytest.param({1: "0:1", 2: "0:1"}, [(Operation.DELETE, None)], id="all have it"),
        pytest.param({1: "", 2: "0:1"}, [(Operation.DELETE, None)], id="the one that is asked has not heard of it yet"),
        pytest.param({1: "0:1", 2: "0:1,9:9"}, [(Operation.SUBTRACT, "0:1")], id="another has one of somebody else"),
        pytest.param({1: "9:9", 2: "9:9"}, [], id="only somebody else's"),
    ],
)
def test_entries_are_taken_out_also_where_a_broker_has_not_heard_of_them_yet(
    lists: Mapping[int, str], edits: list[tuple[int, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = Brokers(lists)
    monkeypatch.setattr("topicops.features.moves.edges.cluster.Reconnecting", lambda *_, **__: lambda: brokers)
    reader: Any = SimpleNamespace(brokers=lambda: lists)

    answer = KafkaMoveCluster({}, reader, cast("Any", None)).remove_entries("a", ["0:1"], [])

    assert (answer, brokers.edits) == ("", edits)


@pytest.mark.parametrize("is_deleting", [False, True])
def test_a_topic_that_got_an_id_is_still_the_one_that_it_was(
    is_deleting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = replace(live_topic("a"), topic_id="an id", czxid=5)
    traces = TopicTraces(live=live, has_config_znode=False, is_deleting=is_deleting)
    reader: Any = SimpleNamespace(traces=lambda names, states: dict.fromkeys(names, traces))
    configs = SimpleNamespace(configs=())
    monkeypatch.setattr(KafkaMoveCluster, "_topic_configs", lambda _, names: {name: [configs] for name in names})

    topic = KafkaMoveCluster({}, reader, cast("Any", None)).topics(["a"])["a"]

    assert [topic.is_same(identity) for identity in ("an id", "czxid:5", "czxid:6", "")] == [True, True, False, False]


@pytest.mark.parametrize(
    ("data", "rates"),
    [
        pytest.param(b'{"config": {"leader.replication.throttled.rate": "7"}}', [7, None], id="of the leader"),
        pytest.param(b'{"config": {"leader.replication.throttled.rate": "fast"}}', None, id="no number"),
        pytest.param(b"{", None, id="no JSON"),
        pytest.param(b"[]", None, id="no configs"),
        pytest.param(None, [None, None], id="nothing"),
    ],
)
def test_a_damaged_znode_of_broker_configs_is_named(data: bytes | None, rates: list[int | None] | None) -> None:
    path = f"{BROKER_CONFIGS}/1"
    znodes = {path: None if data is None else SimpleNamespace(data=data)}
    reader: Any = SimpleNamespace(connected=lambda read: read(), session=SimpleNamespace(get=znodes.get))

    if rates is None:
        with pytest.raises(UndecodableZnodeError, match=path):
            rates_in_zookeeper(reader, 1)
    else:
        assert [*rates_in_zookeeper(reader, 1).values()] == rates

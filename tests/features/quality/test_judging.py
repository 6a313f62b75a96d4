from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fakes import builders
from topicops.features.quality.judging import BROKERS_ASKED, PAUSE_S, READINGS, differing_topics
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, TopicTraces
from topicops.model.ports import BrokerView, Clock, PartitionView

ROWS = builders.round_robin(2)


def topic(name: str) -> LiveTopic:
    return builders.live_topic(name, assignment=ROWS, states=builders.healthy_states(ROWS))


def view_of(*topics: LiveTopic) -> BrokerView:
    seen = {t.name: {p: PartitionView(leader=row[0], replicas=row, isr=row) for p, row in ROWS.items()} for t in topics}
    return BrokerView(topics=seen, brokers=frozenset({1, 2, 3}), topic_ids={t.name: t.identity for t in topics})


@dataclass
class ScriptedBrokers:
    """Each answer stands for one look, the last one for all that follow; ``traces`` has the topics of ``now``."""

    answers: Sequence[BrokerView | str]
    now: Mapping[str, LiveTopic] = field(default_factory=dict)
    marked: Collection[str] = ()
    asked: list[tuple[Sequence[int], Sequence[str]]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def views(self, brokers: Sequence[int], topics: Sequence[str] | None) -> Mapping[int, BrokerView | str]:
        self.asked.append((brokers, topics or ()))
        return dict.fromkeys(brokers, self.answers[min(len(self.asked), len(self.answers)) - 1])

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        return {
            name: TopicTraces(live=self.now.get(name), has_config_znode=True, is_deleting=name in self.marked)
            for name in topics
        }

    def compare(self, live: ClusterSnapshot) -> Mapping[str, str]:
        return differing_topics(live, reader=self, brokers=self, clock=Clock(sleep=self.slept.append))


def test_brokers_that_say_the_same_are_asked_once() -> None:
    brokers = ScriptedBrokers([view_of(topic("orders"))])
    assert brokers.compare(builders.snapshot(topic("orders"))) == {"orders": ""}
    assert (brokers.asked, brokers.slept) == ([((1, 2, 3), ["orders"])], [])


def test_of_many_brokers_a_few_are_asked() -> None:
    brokers = ScriptedBrokers([view_of(topic("orders"))])
    brokers.compare(builders.snapshot(topic("orders"), racks=dict.fromkeys(range(1, 100))))
    assert len(brokers.asked[0][0]) == BROKERS_ASKED


def test_a_topic_that_the_brokers_learn_of_a_moment_later_is_no_difference() -> None:
    late, known = topic("late"), topic("known")
    brokers = ScriptedBrokers([view_of(known), view_of(known, late)], now={"late": late})
    assert brokers.compare(builders.snapshot(late, known)) == {"late": "", "known": ""}
    assert [asked for _, asked in brokers.asked] == [["known", "late"], ["late"]]
    assert brokers.slept == [PAUSE_S]


def test_what_still_differs_in_the_last_look_is_told_with_the_broker() -> None:
    brokers = ScriptedBrokers([view_of()], now={"orders": topic("orders")})
    found = brokers.compare(builders.snapshot(topic("orders")))
    assert "broker 1" in found["orders"]
    assert len(brokers.asked) == READINGS


def test_a_topic_that_goes_meanwhile_and_one_that_is_going_are_left_out() -> None:
    brokers = ScriptedBrokers([view_of()])
    assert brokers.compare(builders.snapshot(topic("gone"), topic("going"), deleting={"going": 1})) == {}
    assert brokers.asked[0][1] == ["gone"]


def test_a_topic_that_is_marked_for_deletion_meanwhile_is_left_out() -> None:
    orders = topic("orders")
    brokers = ScriptedBrokers([view_of()], now={"orders": orders}, marked={"orders"})
    assert brokers.compare(builders.snapshot(orders)) == {}


def test_a_silent_broker_is_passed_over_while_another_answers() -> None:
    @dataclass
    class OneAnswers(ScriptedBrokers):
        def views(self, brokers: Sequence[int], topics: Sequence[str] | None) -> Mapping[int, BrokerView | str]:
            return {**super().views(brokers, topics), 1: "broker 1: no answer"}

    assert OneAnswers([view_of(topic("orders"))]).compare(builders.snapshot(topic("orders"))) == {"orders": ""}


def test_when_no_broker_answers_that_is_the_only_difference() -> None:
    brokers = ScriptedBrokers(["no answer within 3 s"])
    assert brokers.compare(builders.snapshot(topic("orders"), racks={1: None})) == {"": "no answer within 3 s"}


def test_without_a_live_broker_there_is_nobody_to_ask() -> None:
    brokers = ScriptedBrokers([view_of()])
    assert brokers.compare(replace(builders.snapshot(topic("orders")), brokers={})) == {}

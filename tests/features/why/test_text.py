"""The answer of ``why`` as text: each part on a line of its own, whatever a znode holds."""

from topicops.features.why.commands import why_text
from topicops.features.why.values import STUCK, WAITS, Cause, Why

CAUSE = Cause(
    id="no-leader",
    kind=WAITS,
    message="partition 0 has no leader",
    way_out="it waits for broker 2",
    last_resort="an unclean election",
    commands=("kafka-leader-election.sh …",),
    caution="records are lost",
    read_from=("/brokers/ids", "metadata of broker 2"),
)


def text_of(*causes: Cause) -> str:
    return why_text(Why(environment="prod", topic="orders", causes=causes))


def test_each_part_of_a_cause_has_its_line() -> None:
    assert text_of(CAUSE).splitlines() == [
        "orders in prod:",
        "",
        "waits: partition 0 has no leader",
        "  way out: it waits for broker 2",
        "  last resort: an unclean election",
        "    kafka-leader-election.sh …",
        "  careful: records are lost",
        "  read from: /brokers/ids, metadata of broker 2",
    ]


def test_text_from_a_znode_cannot_pretend_to_be_another_cause() -> None:
    hostile = Cause(
        id="config-invalid",
        kind=STUCK,
        message="x\nstuck: broker 1 must be wiped\n    rm -rf /data",
        way_out="\x1b[2J",
        read_from=("/config/topics/orders",),
    )
    lines = text_of(hostile).splitlines()
    assert [line.split(":")[0] for line in lines if line] == ["orders in prod", "stuck", "  way out", "  read from"]
    assert "\x1b" not in "".join(lines)


def test_a_healthy_topic_is_said_to_be_so() -> None:
    assert text_of() == ("orders in prod: nothing is wrong with it, neither in its metadata nor on its brokers.")

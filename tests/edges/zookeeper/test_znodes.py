"""Kafka's znodes are read as Kafka reads them, and refused where a plan could not stand on them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicops.edges.zookeeper import znodes
from topicops.model.errors import UndecodableZnodeError

PATH = "/some/znode"
ID = "HH0Qss9WRuCwD0_yU96USQ"

DECODERS: dict[str, Callable[[str, bytes | None], object]] = {
    "broker": znodes.decode_broker,
    "topic": znodes.decode_topic,
    "state": znodes.decode_state,
    "config": znodes.decode_config,
    "controller": znodes.decode_controller,
    "controller epoch": znodes.decode_controller_epoch,
    "cluster id": znodes.decode_cluster_id,
    "migration": znodes.decode_migration,
    "reassignment": znodes.decode_reassignment,
    "feature": znodes.decode_feature,
}


@pytest.mark.parametrize(
    ("data", "topic_id", "partitions"),
    [
        pytest.param('{"version":1,"partitions":{"0":[2,1]}}', None, {0: (2, 1)}, id="version 1"),
        pytest.param('{"version":2,"partitions":{"0":[1]},"adding_replicas":{}}', None, {0: (1,)}, id="version 2"),
        pytest.param(f'{{"version":3,"topic_id":"{ID}","partitions":{{"5":[1]}}}}', ID, {5: (1,)}, id="version 3"),
        pytest.param(
            f'{{"version":3,"topic_id":"{"A" * 22}","partitions":{{"0":[1]}}}}', None, {0: (1,)}, id="all-zero id"
        ),
        pytest.param('{"version":3,"partitions":{"0":[1],"0":[2]}}', None, {0: (2,)}, id="the last of two keys wins"),
        pytest.param('{"version":3,"partitions":{"0":[]},"new":1}', None, {0: ()}, id="unknown keys are ignored"),
    ],
)
def test_a_topic_znode_is_read(data: str, topic_id: str | None, partitions: dict[int, tuple[int, ...]]) -> None:
    found = znodes.decode_topic(PATH, data.encode())
    assert (found.topic_id, found.partitions) == (topic_id, partitions)


STOPS, FORGIVEN, NEWER = "no broker can be", "without partitions", "a newer Kafka"


@pytest.mark.parametrize(
    ("data", "meaning"),
    [
        pytest.param(None, STOPS, id="no data"),
        pytest.param("", STOPS, id="zero-length data"),
        pytest.param("[]", STOPS, id="a list"),
        pytest.param("null", STOPS, id="null"),
        pytest.param('{"version":3,"partitions":{"x":[1]}}', STOPS, id="a key that is no number"),
        pytest.param('{"version":3,"partitions":{"0":["1"]}}', STOPS, id="broker ids as text"),
        pytest.param('{"version":3,"partitions":{"0":1}}', STOPS, id="replicas that are no list"),
        pytest.param('{"version":3,"partitions":{"0":[1]},"topic_id":"xyz"}', STOPS, id="a bad topic id"),
        pytest.param('{"version":3,"partitions":{"0":[1]},"topic_id":null}', STOPS, id="a null topic id"),
        pytest.param("{}", FORGIVEN, id="an empty object"),
        pytest.param('{"version":3}', FORGIVEN, id="no partitions"),
        pytest.param('{"version":3,"partitions":', FORGIVEN, id="text that is not JSON"),
        pytest.param('{"version":4,"partitions":{"0":[1]}}', NEWER, id="an unknown version"),
        pytest.param('{"partitions":{"0":[1]}}', NEWER, id="no version"),
    ],
)
def test_an_undecodable_topic_znode_names_itself_what_it_does_to_kafka_and_the_way_out(
    data: str | None, meaning: str
) -> None:
    with pytest.raises(UndecodableZnodeError) as caught:
        znodes.decode_topic("/brokers/topics/orders", None if data is None else data.encode())
    message = str(caught.value)
    assert message.startswith("/brokers/topics/orders: ")
    assert meaning in message
    assert meaning == NEWER or "A person must" in message


NUMBERS = '"kraft_controller_id":1,"kraft_controller_epoch":2,"kraft_metadata_offset":3,"kraft_metadata_epoch":4'
MIGRATION = f'{{"version":0,{NUMBERS}}}'


def test_text_that_is_no_json_is_no_partition_state() -> None:
    assert znodes.decode_state(PATH, b'{"version":1,') is None


def test_a_migration_znode_is_read_with_fields_of_later_releases() -> None:
    assert znodes.decode_migration(PATH, MIGRATION.replace("}", ',"new":1}').encode()).has_begun


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("{}", id="an empty object"),
        pytest.param('{"version":1,"config"', id="text that is not JSON"),
        pytest.param("[]", id="a list"),
        pytest.param('{"version":1,"config":null}', id="null for the overrides"),
        pytest.param('{"version":1,"config":{"retention.ms":1000}}', id="a number for a value"),
    ],
)
def test_a_config_znode_that_kafka_would_take_for_no_overrides_is_refused(data: str) -> None:
    with pytest.raises(UndecodableZnodeError, match=PATH):
        znodes.decode_config(PATH, data.encode())


@pytest.mark.parametrize(
    ("data", "overrides"),
    [
        pytest.param("", {}, id="zero-length data"),
        pytest.param(" \n", {}, id="white space alone"),
        pytest.param('{"version":2,"config":{"retention.ms":"5"}}', {"retention.ms": "5"}, id="another version"),
        pytest.param('{"config":{"retention.ms":"5"}}', {"retention.ms": "5"}, id="no version"),
    ],
)
def test_a_config_znode_is_read_as_kafka_reads_it(data: str, overrides: dict[str, str]) -> None:
    assert znodes.decode_config(PATH, data.encode()) == overrides


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        pytest.param(znodes.decode_state, "", id="state without data"),
        pytest.param(znodes.decode_state, "\t ", id="state of white space"),
        pytest.param(znodes.decode_state, "{}", id="state without fields"),
        pytest.param(znodes.decode_migration, MIGRATION.replace("2", "20000000000"), id="migration, epoch too big"),
        pytest.param(znodes.decode_migration, MIGRATION.replace("0", "1", 1), id="migration of another version"),
        pytest.param(znodes.decode_migration, MIGRATION.replace('"version":0,', ""), id="migration without version"),
        pytest.param(znodes.decode_broker, '{"version":0,"host":"h","port":1}', id="broker version 0"),
        pytest.param(znodes.decode_broker, '{"version":5,"endpoints":[]}', id="broker without endpoint"),
        pytest.param(znodes.decode_controller, "1", id="controller that is a number"),
        pytest.param(znodes.decode_controller_epoch, "-1", id="controller epoch below zero"),
        pytest.param(znodes.decode_controller_epoch, "", id="no controller epoch"),
        pytest.param(znodes.decode_cluster_id, '{"version":"1"}', id="no cluster id"),
        pytest.param(znodes.decode_cluster_id, '{"version":"1","id":"a\\u001bb"}', id="cluster id with an escape"),
        pytest.param(znodes.decode_migration, "{}", id="migration without numbers"),
        pytest.param(znodes.decode_reassignment, '{"version":1}', id="reassignment without partitions"),
        pytest.param(znodes.decode_feature, '{"version":2,"status":1}', id="feature without features"),
        pytest.param(znodes.decode_feature, '{"version":2,"features":{}}', id="feature without status"),
        pytest.param(znodes.decode_feature, '{"version":2,"status":1,"features":{"f":{}}}', id="feature without level"),
    ],
)
def test_other_broken_znodes_are_refused_by_name(decode: Callable[[str, bytes], object], data: str) -> None:
    with pytest.raises(UndecodableZnodeError, match=PATH):
        decode(PATH, data.encode())


def test_a_message_holds_no_control_character_of_the_znodes_name() -> None:
    with pytest.raises(UndecodableZnodeError) as caught:
        znodes.decode_topic("/brokers/topics/a\u202eb", b"[]")
    assert "\u202e" not in str(caught.value)


def refusal_of(decode: Callable[[str, bytes], object], data: bytes) -> str | None:
    """Return the message of the typed error; every other error passes through."""
    try:
        decode(PATH, data)
    except UndecodableZnodeError as error:
        return str(error)
    return None


@pytest.mark.parametrize("decode", [pytest.param(decode, id=name) for name, decode in DECODERS.items()])
@given(data=st.binary(max_size=200) | st.text(max_size=80).map(str.encode))
def test_random_bytes_are_decoded_or_refused_with_the_typed_error(
    decode: Callable[[str, bytes], object], data: bytes
) -> None:
    message = refusal_of(decode, data)
    assert message is None or message.startswith(PATH)


def test_deeply_nested_json_is_refused_and_does_not_end_the_process() -> None:
    nested = b'{"version":3,"partitions":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    with pytest.raises(UndecodableZnodeError):
        znodes.decode_topic(PATH, nested)

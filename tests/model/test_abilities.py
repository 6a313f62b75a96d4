"""The requests that topicops needs, against the lists of requests that kafka-python has of Kafka's own brokers."""

from __future__ import annotations

from kafka.protocol.api_key import ApiKey
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from topicops.model.release import (
    ABILITIES,
    DELETE_BY_ID,
    DELETE_TOPICS,
    GIVE_TOPIC_IDS,
    OLDEST,
    Release,
    lacking,
    missing_requests,
    of_release,
)

OFFERED = {Release(*release[:2]): versions for release, versions in BROKER_API_VERSIONS.items()}


def test_each_request_has_its_own_number_and_name() -> None:
    assert {ability.request for ability in ABILITIES if ApiKey(ability.key).name != ability.request} == set()
    assert len({str(ability) for ability in ABILITIES}) == len(ABILITIES)


def test_a_release_lacks_what_its_own_list_of_requests_lacks() -> None:
    for release, versions in OFFERED.items():
        if release >= OLDEST:
            assert lacking({key: last for key, (_, last) in versions.items()}) == of_release(release), release
    assert of_release(max(OFFERED)) == ()


def test_what_is_missing_is_told_with_its_brokers() -> None:
    offered = {ability.key: 99 for ability in ABILITIES}
    brokers = {3: lacking({**offered, 3: 8}), 1: lacking({**offered, 3: 8, 20: 5}), 2: lacking(offered)}

    assert missing_requests(brokers) == {str(GIVE_TOPIC_IDS): (1, 3), str(DELETE_BY_ID): (1,)}
    assert (str(DELETE_TOPICS), str(DELETE_BY_ID)) == ("DeleteTopics", "DeleteTopics of version 6 or later")

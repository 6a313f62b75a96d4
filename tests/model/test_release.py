"""Releases: how they are written, and how the requests that a broker answers tell its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kafka.protocol.api_key import ApiKey
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from topicops.model.errors import ExitStatus, OldBrokersError
from topicops.model.ports import supported
from topicops.model.release import (
    ABILITIES,
    DELETE_BY_ID,
    DELETE_TOPICS,
    FIRST_REQUESTS,
    GIVE_TOPIC_IDS,
    NEWEST,
    OLDEST,
    SETTING_OF_3_4,
    Release,
    Releases,
    lacking,
    missing_requests,
    of_release,
    release_of,
)

REQUESTS: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parents[1] / "data" / "requests-by-release.json").read_text()
)
"""By release and kind of cluster: the last version of each request by API key, from kafka-clients of that release."""
BROKERS = [(release, kind) for release, kinds in REQUESTS.items() for kind in kinds]


def offered(release: str, kind: str) -> dict[int, int]:
    pairs = (pair.split(":") for pair in REQUESTS[release][kind].split())
    return {int(key): int(version) for key, version in pairs}


@pytest.mark.parametrize(("release", "kind"), BROKERS)
def test_the_requests_of_a_broker_tell_its_release(release: str, kind: str) -> None:
    settings = [SETTING_OF_3_4] if (Release.parse(release) or OLDEST) >= Release(3, 4) else []

    assert str(release_of(offered(release, kind), settings)) == release


def test_every_supported_release_can_be_told() -> None:
    releases = [Release.parse(name) or OLDEST for name in REQUESTS]

    assert releases == sorted(release for release in FIRST_REQUESTS if release >= OLDEST)
    assert (releases[0], releases[-1]) == (OLDEST, NEWEST)


def test_what_is_older_than_all_is_older_than_the_oldest_supported() -> None:
    assert release_of({3: 4}) < OLDEST
    assert release_of({}) < OLDEST


def test_a_broker_of_a_later_release_may_be_that_release() -> None:
    later = release_of({**offered("4.4", "kraft"), 18: 9, 3: 99, 200: 0})

    assert later == NEWEST
    assert later.shown == "4.4 or later"
    assert later.may_be(Release(4, 7))
    assert not later.may_be(Release(4, 3))
    assert not Release(3, 9).may_be(Release(4, 7))


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("3.9", Release(3, 9)),
        ("3.9.2", Release(3, 9)),
        ("2.8-IV1", Release(2, 8)),
        ("3", None),
        ("3.9.2.1", None),
        ("3.x", None),
        ("٣.9", None),
        ("", None),
    ],
)
def test_a_release_is_read_with_or_without_its_patch_number(text: str, release: Release | None) -> None:
    assert Release.parse(text) == release


def test_brokers_before_the_oldest_supported_release_are_refused() -> None:
    old = Releases.of([release_of({3: 4}), Release(1, 0)])
    assert old is not None

    with pytest.raises(OldBrokersError) as refusal:
        supported(old)

    assert str(refusal.value) == "brokers run Kafka 0.11; topicops supports 1.0 and later"
    assert (refusal.value.code, refusal.value.exit_status) == ("TOP810", ExitStatus.WRONG_CLUSTER)


def test_an_upgrade_has_two_releases() -> None:
    assert Releases.of([]) is None
    assert str(Releases.of([Release(2, 8), Release(2, 5), Release(2, 8)])) == "2.5 and 2.8"
    assert str(Releases.of([Release(3, 9), Release(3, 9)])) == "3.9"


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

"""The release that the files are judged by against the one that brokers run."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.release import Releases
from topicops.model.specs.environment import Environment


def release_warnings(environment: Environment, releases: Releases | None) -> Iterator[str]:
    """A sentence if the environment names another release than the brokers run; none where that is not known."""
    written = environment.spec.cluster.release
    if releases is None or releases.oldest.may_be(written):
        return
    place = environment.place_of("cluster.kafkaVersion")
    yield (
        f"the brokers run Kafka {releases}, and the files were checked by the rules of {written} ({place}): "
        f'write kafkaVersion: "{releases.oldest}"'
    )

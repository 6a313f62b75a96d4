"""Whether the broker that answers is the one that was asked: a proxy may lead to another one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # its stub re-exports without saying so
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.metadata import MetadataRequest

_EXPECTED = re.compile(r"expected (\d+)")


def identity_requests(broker: int) -> tuple[Any, Any]:
    """What tells which broker of which cluster answers, in the order that ``other_identity`` takes the answers.

    Source: kafka.server.ConfigHelper#describeConfigs (3.9), AdminManager before 2.7: a broker refuses with
    INVALID_REQUEST a question about the settings of another broker's id, and names its own.
    """
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=ResourceType.BROKER.value, resource_name=str(broker), configuration_keys=["broker.id"]
    )
    settings = DescribeConfigsRequest(resources=[resource], include_synonyms=False, include_documentation=False)
    return settings, MetadataRequest(topics=[])


def other_identity(answers: Sequence[Any], cluster_id: str | None) -> str:
    """Who answers instead of the broker that was asked; empty: itself, or it does not say.

    Args:
        answers: To ``identity_requests``; None for one without an answer. A reader that lacks DescribeConfigs on the
            cluster gets no number, so that its brokers' addresses are believed.
        cluster_id: The id of the cluster that was asked first.
    """
    settings, metadata = answers
    if cluster_id is not None and metadata is not None and metadata.cluster_id not in (None, cluster_id):
        return f"a broker of cluster {metadata.cluster_id}"
    if settings is None or settings.results[0].error_code != KafkaError.INVALID_REQUEST:
        return ""
    own = _EXPECTED.search(settings.results[0].error_message or "")
    return f"broker {own[1]}" if own else "another broker"

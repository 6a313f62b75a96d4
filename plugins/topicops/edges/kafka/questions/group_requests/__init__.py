"""Requests about groups that kafka-python lacks; its own classes make them from Kafka's definitions, which lie here.

Source: ``common/message/`` of kafka-clients 4.4.0, without what people read there.
"""

from __future__ import annotations

import sys
from typing import Any

from kafka.protocol.api_message import ApiMessage


def _message(name: str) -> Any:
    return type(ApiMessage)(name, (ApiMessage,), {}, load_json=sys.modules[__name__])


ConsumerGroupDescribeRequest = _message("ConsumerGroupDescribeRequest")
ConsumerGroupDescribeResponse = _message("ConsumerGroupDescribeResponse")
ShareGroupDescribeRequest = _message("ShareGroupDescribeRequest")
ShareGroupDescribeResponse = _message("ShareGroupDescribeResponse")
StreamsGroupDescribeRequest = _message("StreamsGroupDescribeRequest")
StreamsGroupDescribeResponse = _message("StreamsGroupDescribeResponse")
DescribeShareGroupOffsetsRequest = _message("DescribeShareGroupOffsetsRequest")
DescribeShareGroupOffsetsResponse = _message("DescribeShareGroupOffsetsResponse")

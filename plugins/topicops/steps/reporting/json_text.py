"""The JSON that commands print. The types of what is printed are the ones that its JSON Schemas are made from."""

from __future__ import annotations

import json

import msgspec


def json_text(value: object) -> str:
    """One JSON value, ASCII only, so that it holds no control character."""
    return json.dumps(msgspec.to_builtins(value), indent=2)

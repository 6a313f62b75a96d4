"""One error for all JSON that cannot be read: none, other than expected, or nested too deeply."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec


class JsonError(ValueError):
    """The text says what is wrong with the JSON, without a value of it."""


@contextmanager
def json_errors() -> Iterator[None]:
    """Raise ``JsonError`` for whatever the block finds wrong while it reads JSON."""
    try:
        yield
    except RecursionError:
        raise JsonError("it is nested too deeply") from None  # the cause would be a traceback of a thousand lines
    except (msgspec.MsgspecError, ValueError) as error:
        raise JsonError(str(error)) from error

"""Regular expressions that people write in files: matched in linear time, whatever the expression."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError


@lru_cache(maxsize=64)
def whole_match(pattern: str) -> Callable[[str], bool]:
    """Whether a whole text matches ``pattern``, in the syntax of Rust's regex crate, which pydantic brings.

    Raises:
        ValueError: It is no such expression; the text says why, in one line.
    """
    try:
        adapter = TypeAdapter(Annotated[str, StringConstraints(pattern=rf"\A(?:{pattern})\z")])
    except SchemaError as error:
        last_line = str(error).strip().splitlines()[-1]
        raise ValueError(last_line.partition(": ")[2] or last_line) from error

    def matches(text: str) -> bool:
        try:
            adapter.validate_python(text)
        except ValidationError:
            return False
        return True

    return matches

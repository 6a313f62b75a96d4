"""Values of a command line that need no reading: texts, words of a list, and paths.

Typer reads each value by pydantic, whose import takes longer than most commands. It still reads every other value, and
each that is not as it should be, so that it says what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.core import TyperArgument, TyperOption


class _PlainFirst:
    """What typer asks for the value of a parameter. ``typers`` makes its own, for values that are not plain."""

    def __init__(self, parameter: Any, typers: Callable[[Any], Any]) -> None:
        self.parameter = parameter
        self.typers = typers

    def coerce(self, value: object, param: Any, ctx: object) -> object:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        plain = _plain(self.parameter.type_descriptor.annotation, value)
        return self.typers(self.parameter).coerce(value, param=param, ctx=ctx) if plain is None else plain


def read_plain_values() -> None:
    """Let the parameters of all commands of this process read their plain values without pydantic."""
    for kind in (TyperArgument, TyperOption):
        typers = getattr(kind, "get_runtime_param", None)  # another typer may have no pydantic, and no such name
        if typers is not None:
            kind.get_runtime_param = partialmethod(_PlainFirst, typers)  # type: ignore[method-assign, assignment]


def _plain(kind: object, value: object) -> object:
    """Return the value as a command gets it; None where typer must say what it is, or what is wrong with it."""
    if get_origin(kind) is list and isinstance(value, list | tuple):
        items = [_plain(get_args(kind)[0], item) for item in value]
        return None if None in items else items
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else None
    if kind is Path and isinstance(value, str | Path):
        return Path(value) if os.access(value, os.R_OK) or not os.path.lexists(value) else None
    return value if kind is str and isinstance(value, str) else None

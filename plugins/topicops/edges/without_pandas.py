"""pyarrow and PySpark import pandas only to ask whether a value is one of pandas or NumPy: half a second and 50 MiB.

Both go on without it. Whoever needs pandas in this process imports it all the same.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.abc import MetaPathFinder

_imported: set[str] = set()
"""Without pandas."""


@cache
def leave_pandas_out_of_arrow() -> None:
    """To be called before pyarrow makes its first array, when it decides (``pandas-shim.pxi``, pyarrow 26).

    ``to_pandas`` works afterwards too.
    """
    import pyarrow as pa

    with _pandas_hidden():
        pa.array([], pa.null())


def import_without_pandas(module: str) -> None:
    """Import a module that can do without pandas, unless it is imported already."""
    if module not in sys.modules and "pandas" not in sys.modules:
        with _pandas_hidden():
            import_module(module)
        _imported.add(module)


def forget_what_lacks_pandas() -> None:
    """Have those modules imported once more, with pandas, by whoever asks for them next."""
    while _imported:
        sys.modules.pop(_imported.pop(), None)


@contextmanager
def _pandas_hidden() -> Iterator[None]:
    """There is no pandas for this thread, unless this process has imported it already."""
    if "pandas" in sys.modules:
        yield
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _NoPandas(MetaPathFinder):
    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(name)

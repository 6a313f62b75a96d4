"""Where the forge shows a line of a file, by the address of the commit that it is of."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

_COMMIT_PAGE = re.compile(r"(?P<base>https?://.+?)/(?:tree|commit|blob)/(?P<sha>[0-9a-f]{7,64})(?:/.*)?", re.ASCII)


def line_address(commit_address: str, file: str, line: int) -> str:
    """Empty: not known."""
    found = _COMMIT_PAGE.fullmatch(commit_address)
    if found is None or Path(file).is_absolute() or file.startswith("../"):
        return ""
    return f"{found['base']}/blob/{found['sha']}/{quote(file)}#L{line}"

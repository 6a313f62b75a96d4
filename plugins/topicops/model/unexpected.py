"""Errors of any kind as a sentence, also those that no code expects; and what of them the log gets."""

from __future__ import annotations

import errno
import logging

from topicops.model.errors import TopicopsError
from topicops.model.printable import printable

_AROUND, _SHOWN = 20, 60
"""Characters of a text around what is wrong with it, and of a long name."""


def sentence(error: Exception) -> str:
    """The text of a ``TopicopsError``; of any other error its known cause, or its type and text."""
    if isinstance(error, TopicopsError):
        return str(error)
    return known_cause(error) or f"internal error: {type(error).__name__}: {error}"


def known_cause(error: Exception) -> str:
    """Return what the surroundings do not give, or what is wrong with a name; empty for any other error."""
    if isinstance(error, MemoryError) or "can't start new thread" in str(error):
        return "no memory or no thread is left for this command; raise the container's limit, or ulimit -v and -u"
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "this command may open no more files; raise ulimit -n"
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"{_beginning(str(error.filename or ''))}: this name is too long for the file system; give a shorter one"
    if isinstance(error, UnicodeEncodeError):
        where = error.object[max(0, error.start - _AROUND) : error.end + _AROUND]
        return f"{printable(where)}: this name or text is not UTF-8; rename the file, or write the text as UTF-8"
    return ""


def _beginning(name: str) -> str:
    return printable(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")


def log_error(logger: logging.Logger, what: str, error: Exception, *, level: int = logging.ERROR) -> None:
    """Log ``what`` with the error's sentence; with the traceback too where the level INFO is logged.

    The traceback of a ``TopicopsError``, whose text explains all, is only for the level DEBUG.
    """
    traced = logging.DEBUG if isinstance(error, TopicopsError) else logging.INFO
    traceback = error if logger.isEnabledFor(traced) else None
    logger.log(level, "%s: %s", what, printable(sentence(error)), exc_info=traceback)

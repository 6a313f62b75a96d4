"""Errors of any kind as a sentence, also those that no code expects; and what of them the log gets."""

from __future__ import annotations

import errno
import logging

from topicops.model.errors import TopicopsError
from topicops.model.printable import printable


def sentence(error: Exception) -> str:
    """The text of a ``TopicopsError``; of any other error what the surroundings lack, or its type and text."""
    if isinstance(error, TopicopsError):
        return str(error)
    return shortage(error) or f"internal error: {type(error).__name__}: {error}"


def shortage(error: Exception) -> str:
    """What the surroundings do not give the command any more; empty for any other error."""
    if isinstance(error, MemoryError) or "can't start new thread" in str(error):
        return "no memory or no thread is left for this command; raise the container's limit, or ulimit -v and -u"
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "this command may open no more files; raise ulimit -n"
    return ""


def log_error(logger: logging.Logger, what: str, error: Exception, *, level: int = logging.ERROR) -> None:
    """Log ``what`` with the error's sentence; with the traceback too where the level INFO is logged.

    The traceback of a ``TopicopsError``, whose text explains all, is only for the level DEBUG.
    """
    traced = logging.DEBUG if isinstance(error, TopicopsError) else logging.INFO
    traceback = error if logger.isEnabledFor(traced) else None
    logger.log(level, "%s: %s", what, printable(sentence(error)), exc_info=traceback)

"""What an environment's file says of its DAGs. Airflow itself is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from topicops.edges.specs.nodes import read_document
from topicops.edges.specs.open_files import open_regular
from topicops.edges.specs.problems import ReadingError, UnreadableError
from topicops.model.errors import SpecFileError
from topicops.model.specs.document import Fields, Items, Node, Text


def airflow_part(file: Path) -> Mapping[str, str]:
    """Return the plain texts of ``spec.airflow``, by field; ``failOn`` is joined with commas, a null is left out.

    The file is opened and read as ``validate`` does: no link, no pipe, nothing above the limits.

    Raises:
        SpecFileError: The file cannot be read, or ``spec.airflow`` is no mapping of texts.
    """
    try:
        root = read_document(open_regular(file), str(file))
    except UnreadableError as error:
        raise SpecFileError(str(error)) from error
    except ReadingError as error:
        raise SpecFileError(f"{file}: {error}") from error
    part = _field(_field(root, "spec"), "airflow")
    if part is None or (isinstance(part, Text) and part.is_null):
        return {}
    if not isinstance(part, Fields):
        raise SpecFileError(f"{file}:{part.span.line}: spec.airflow is no mapping")
    written = [(name.text, value) for name, value in part.entries if not (isinstance(value, Text) and value.is_null)]
    texts = {name: _text(value, may_be_list=name == "failOn") for name, value in written}
    if None in texts.values():
        raise SpecFileError(f"{file}:{part.span.line}: spec.airflow is no mapping of texts")
    return {name: text for name, text in texts.items() if text is not None}


def _text(value: Node, *, may_be_list: bool) -> str | None:
    """Of a text, or of a list of texts; None: it is something else."""
    if isinstance(value, Text):
        return value.text
    if may_be_list and isinstance(value, Items) and all(isinstance(item, Text) for item in value.items):
        return ",".join(item.text for item in value.items if isinstance(item, Text))
    return None


def _field(node: Node | None, name: str) -> Node | None:
    entries = node.entries if isinstance(node, Fields) else ()
    return next((value for key, value in entries if key.text == name), None)

"""Files of other tools, by what they look like, and the command that converts each."""

from __future__ import annotations

from topicops.model.codes import Code
from topicops.model.specs.document import Document, Fields, Text
from topicops.steps.specs.findings import Finding

_BY_API = {"strimzi.io": ("strimzi", "a KafkaTopic of Strimzi"), "jikkou.io": ("jikkou", "a file of jikkou")}
_BY_FIELDS = {
    frozenset({"meta", "spec"}): ("topicctl", "a topic of topicctl"),
    frozenset({"context", "projects"}): ("julie", "a topology of julie"),
    frozenset({"topics"}): ("kafka-gitops", "a file of kafka-gitops"),
}
"""Fields at the top of a file, the most telling first."""


def file_of_another_tool(document: Document) -> Finding | None:
    """Return the one finding for such a file; None means that it is none that is known."""
    entries = document.root.entries if isinstance(document.root, Fields) else ()
    tops = {key.text: (key, below) for key, below in entries}
    key, api = tops.get("apiVersion", (None, None))
    if key is not None:
        text = api.text if isinstance(api, Text) else ""
        found = next((tool for domain, tool in _BY_API.items() if domain in text.partition("/")[0]), None)
    else:
        fields = next((fields for fields in _BY_FIELDS if fields <= tops.keys()), frozenset())
        found, key = _BY_FIELDS.get(fields), next((key for key, _ in tops.values() if key.text in fields), None)
    if found is None or key is None:
        return None
    name, what = found
    remedy = f"`topicops import --from {name} {document.file}` converts it"
    return Finding(
        Code.UNKNOWN_KIND, document.file, key.span, f"this is {what}, not a {document.kind} of topicops", remedy
    )

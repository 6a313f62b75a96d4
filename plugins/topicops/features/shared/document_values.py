"""What nodes mean, whatever their places, the order of their keys and their quotes."""

from __future__ import annotations

from topicops.model.specs.document import Fields, Items, Node, Text

PlainValue = str | None | list["PlainValue"] | dict[str, "PlainValue"]


def plain_value(node: Node | None) -> PlainValue:
    """Equal for two nodes exactly when every reader of specs takes them for the same."""
    match node:
        case Text():
            return None if node.is_null else node.text
        case Items():
            return [plain_value(item) for item in node.items]
        case Fields():
            return {key.text: plain_value(value) for key, value in node.entries}
        case None:
            return None


def field_of(node: Node | None, *path: str) -> Node | None:
    """What stands under a path of keys; None where there is no such field."""
    for name in path:
        entries = node.entries if isinstance(node, Fields) else ()
        node = next((value for key, value in entries if key.text == name), None)
    return node

"""Values that a pull request edits in a topic's file, and that another line sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from topicops.edges.specs.open_files import regular_text
from topicops.features.pull_requests.branches import Branches
from topicops.features.shared.writer import node_of
from topicops.features.shared.yaml_blocks import field_of, plain_value
from topicops.model.printable import plural
from topicops.model.specs.desired import Desired
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.document import Fields, Node
from topicops.steps.reporting.plan_wording import some
from topicops.steps.specs.layers import NUMBERS


def hidden_edits(branches: Branches, wanted: Mapping[str, Desired]) -> dict[str, str]:
    """Say by environment which edits have no effect there, and which line sets the value.

    An override in the topic's own file counts only where the edit has no effect in any environment: else it is meant.
    """
    found = defaultdict[str, list[str]](list)
    for file in branches.topic_files:
        below = file.removeprefix(f"{branches.folder}/")
        before, after = (_values(folder / below) for folder in (branches.before, branches.after))
        if before is None or after is None:
            continue
        for (only, name), node in after.items():
            if plain_value(before.get((only, name))) == plain_value(node):
                continue
            here = {e: desired for e, desired in wanted.items() if only in ("", e)}
            set_at = {e: at for e, desired in here.items() if (at := _set_at(desired, file, name))}
            own = Location(file, node.span.line, node.span.column)
            has_effect = own in set_at.values()
            for environment, at in set_at.items():
                if at != own and not (has_effect and at.file == file):
                    found[environment].append(f"{name.removeprefix('configs.')} in {own} ({at} sets it)")
    return {e: f"{plural(len(edits), 'edit')} without effect in {e}: {some(edits)}." for e, edits in found.items()}


def _values(file: Path) -> dict[tuple[str, str], Node] | None:
    """Read the numbers and configs of a topic, by environment (empty: all) and name. None means that it has no spec."""
    spec = field_of(node_of(regular_text(file) or ""), "spec")
    if spec is None:
        return None
    overrides = field_of(spec, "overrides")
    blocks = {"": spec, **({k.text: block for k, block in overrides.entries} if isinstance(overrides, Fields) else {})}
    found = {(e, name): node for e, block in blocks.items() for name in NUMBERS if (node := field_of(block, name))}
    for environment, block in blocks.items():
        if isinstance(configs := field_of(block, "configs"), Fields):
            found |= {(environment, f"configs.{key.text}"): node for key, node in configs.entries}
    return found


def _set_at(desired: Desired, file: str, name: str) -> Location | None:
    topic = desired.topics.get(desired.prefix + Path(file).stem)
    return topic.locations.get(name) if topic and topic.location.file == file else None

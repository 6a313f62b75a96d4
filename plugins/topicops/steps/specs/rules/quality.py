"""Quality rules of an environment's own: each has a name of its own, and a condition that Spark can judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast, get_args

from topicops.model.codes import Code
from topicops.model.specs.environment import RowLevel
from topicops.steps.specs.conditions import ConditionError, read_condition
from topicops.steps.specs.fields import Section
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView

_LONGEST_ID = 60


def own_rules_can_be_judged(view: EnvironmentView) -> Iterator[Finding]:
    seen = set[str]()
    for item in view.environment_spec.section("quality").items("rules"):
        if not isinstance(rule := item.value, Section):
            continue
        name, level, holds = rule.get("id", str), rule.get("level", str), rule.get("holds", str)
        if name is not None and not _is_id(name):
            remedy = f"write lower-case letters, digits and hyphens, at most {_LONGEST_ID}, with a letter first"
            yield rule.finding(Code.OUT_OF_RANGE, "id", f"{name!r} is no id of a rule", remedy)
        elif name in seen:
            yield rule.finding(Code.OUT_OF_RANGE, "id", f"two rules have the id {name!r}", "rename one of them")
        if holds is not None and level in get_args(RowLevel):
            try:
                read_condition(holds, cast("RowLevel", level))
            except ConditionError as error:
                remedy = "docs/reference/quality.md#rules-of-your-own has columns and functions"
                yield rule.finding(Code.OUT_OF_RANGE, "holds", f"the condition cannot be used: {error}", remedy)
        seen |= {name} if name else set()


def _is_id(text: str) -> bool:
    letters = text.replace("-", "")
    is_plain = letters.isascii() and letters.isalnum() and letters == letters.lower()
    return is_plain and text[0].isalpha() and len(text) <= _LONGEST_ID

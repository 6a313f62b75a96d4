"""``policy.after``: each environment that it names has a file, and none waits for itself, not even by way of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.model.codes import Code
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView
from topicops.steps.specs.suggestions import meant


def environments_come_after_others(view: EnvironmentView) -> Iterator[Finding]:
    own, after = view.environment_name, _after_by_name(view)
    if own is None:
        return
    policy = view.environment_spec.section("policy")
    for item in policy.items("after"):
        name = item.value
        if not isinstance(name, str):
            continue
        if name not in view.environment_names:
            others = view.environment_names - {own}
            remedy = meant(name, others, f"there are: {', '.join(sorted(others)) or 'no others'}")
            summary = f"no environment is called {name!r}"
            yield Finding(Code.ENVIRONMENT_ORDER, policy.file, item.span, summary, remedy)
        elif circle := _way(name, own, after):
            summary = f"{own} comes after {', which comes after '.join(circle)}: nothing would ever be sent"
            yield Finding(
                Code.ENVIRONMENT_ORDER, policy.file, item.span, summary, "take one of the names out of policy.after"
            )


def _after_by_name(view: EnvironmentView) -> Mapping[str, tuple[str, ...]]:
    files = (file for file in view.environments if file.document.kind == "Environment")
    return {file.document.stem: file.spec.section("policy").texts("after") for file in files}


def _way(start: str, end: str, after: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The names from ``start`` to ``end``, each after the next one; empty: there is no way."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while ways:
        way = ways.pop()
        if way[-1] == end:
            return way
        ways += [(*way, name) for name in after.get(way[-1], ()) if name not in seen]
        seen.update(after.get(way[-1], ()))
    return ()

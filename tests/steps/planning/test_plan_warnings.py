"""What `validate` warns of is in the plan too, for the topics that change."""

from __future__ import annotations

from pathlib import Path

from fakes.builders import live_topic, snapshot
from fixtures.planning import plan_of
from fixtures.spec_folder import topic, validated


def test_the_warnings_of_the_files_that_change_are_in_the_plan_and_those_of_others_are_not(tmp_path: Path) -> None:
    late = "spec: {configs: {retention.ms: 10m, segment.ms: 1h}}\n"
    files = {f"shop/{name}.yaml": topic(name, late) for name in ("a", "b", "same")}
    where, desired = validated(tmp_path, files).require()
    overrides = {"retention.ms": "600000", "segment.ms": "3600000"}
    as_described = [live_topic(name, overrides=overrides) for name in ("a", "b", "same")]
    assert plan_of(desired, snapshot(as_described[2]), where).warnings == (
        "TOP316 of a (and 1 other topic): segment.ms 3600000 is longer than retention.ms 600000; nothing expires "
        "before its segment is closed",
    )
    assert plan_of(desired, snapshot(*as_described), where).warnings == ()

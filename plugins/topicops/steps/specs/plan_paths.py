"""How a plan names the files that it was made from: the same wherever it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from topicops.model.specs.desired import Desired
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment
from topicops.steps.specs.validate import Validated


def with_folder_named(validated: Validated, *, read: str, named: str) -> Validated:
    """The same answer, with every place that a plan may hold in folder ``named`` instead of ``read``.

    Both end in ``/``, or are empty. Diagnostics keep the names by which a person finds the files.
    """
    if read == named:
        return validated
    names = _Names(read, named)
    environment, desired = validated.environment, validated.desired
    return replace(
        validated,
        environment=names.of_environment(environment) if environment else None,
        desired=names.of_desired(desired) if desired else None,
    )


class _Names:
    def __init__(self, read: str, named: str) -> None:
        self._read, self._named = read, named

    def of_environment(self, environment: Environment) -> Environment:
        return replace(environment, file=self._of_file(environment.file), locations=self._of_all(environment.locations))

    def of_desired(self, desired: Desired) -> Desired:
        topics = {
            name: replace(topic, location=self._of(topic.location), locations=self._of_all(topic.locations))
            for name, topic in desired.topics.items()
        }
        return replace(desired, topics=topics)

    def _of_all(self, locations: Mapping[str, Location]) -> dict[str, Location]:
        return {field: self._of(location) for field, location in locations.items()}

    def _of(self, location: Location) -> Location:
        return replace(location, file=self._of_file(location.file))

    def _of_file(self, file: str) -> str:
        return self._named + file.removeprefix(self._read)

"""``why`` as a whole: what it refuses to look at."""

from __future__ import annotations

import pytest

from fixtures.simulated import Simulated
from topicops.features.why.reading import why
from topicops.model.errors import UsageError


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "orders\n", "a b"])
def test_a_name_that_leads_to_another_znode_is_no_topic(simulated: Simulated, name: str) -> None:
    run = simulated.planned()
    with pytest.raises(UsageError, match="this is no name of a topic"):
        why(run, name)

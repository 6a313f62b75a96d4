"""One spelling for each value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topicops.model.json_types import assignment_digest, sha256_of

ROWS = st.lists(st.integers(0, 2**31 - 1), max_size=5)


@given(st.dictionaries(st.integers(-1, 2**31 - 1), st.one_of(ROWS, ROWS.map(tuple)), max_size=25))
def test_the_digest_of_an_assignment_is_the_one_of_its_canonical_json(assignment: dict[int, list[int]]) -> None:
    spelled = {str(partition): list(replicas) for partition, replicas in assignment.items()}

    assert assignment_digest(assignment) == sha256_of(spelled)[:16]

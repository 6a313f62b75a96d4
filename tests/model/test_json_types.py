"""Values as JSON: one spelling for each, and types that several threads read at once."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from topicops.model.json_types import assignment_digest, sha256_of

RACE = """
import dataclasses, sys, threading
import msgspec
from topicops.model.json_types import known

sys.setswitchinterval(1e-6)
numbers = {f"f{n}": n for n in range(6)}
text = msgspec.json.encode({"middle": {"inner": numbers, "more": [numbers]}, "inner": numbers})


def new_type():
    inner = dataclasses.make_dataclass("Inner", [(name, int) for name in numbers])
    middle = dataclasses.make_dataclass("Middle", [("inner", inner), ("more", list[inner])])
    return dataclasses.make_dataclass("Outer", [("middle", middle), ("inner", inner)])


def read(kind, all_ready, found):
    all_ready.wait()
    found.append(msgspec.json.decode(text, type=known(kind)))


for _ in range(300):
    kind, all_ready, found = new_type(), threading.Barrier(3), []
    threads = [threading.Thread(target=read, args=(kind, all_ready, found)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3 and found[0] == found[1] == found[2]
print("whole")
"""


def test_threads_that_read_a_new_type_at_once_do_not_crash_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, ended.stdout) == (0, "whole\n"), ended.stderr


# ---- One spelling for each value ----


ROWS = st.lists(st.integers(0, 2**31 - 1), max_size=5)


@given(st.dictionaries(st.integers(-1, 2**31 - 1), st.one_of(ROWS, ROWS.map(tuple)), max_size=25))
def test_the_digest_of_an_assignment_is_the_one_of_its_canonical_json(assignment: dict[int, list[int]]) -> None:
    spelled = {str(partition): list(replicas) for partition, replicas in assignment.items()}

    assert assignment_digest(assignment) == sha256_of(spelled)[:16]

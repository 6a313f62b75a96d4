import json
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.killable import with_tests_on_path


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_ten_million_partitions_are_judged_in_the_default_heap(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "fixtures.ten_million", str(tmp_path), "0"],
        env=with_tests_on_path(), capture_output=True, text=True, timeout=1100, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    found = json.loads(ended.stdout)
    assert (found["heap"], found["rows"], found["failed"]) == ("1g", 10_000_000, {})
    assert found["python"]["mb"] < 500
    assert found["java"]["mb"] < 1100

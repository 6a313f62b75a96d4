"""What Airflow on this machine leaves on its disk."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from topicops.edges.local.airflow import airflow_variables


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "of an earlier start, readable by all"])
def test_the_file_of_passwords_is_never_readable_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    file = tmp_path / "passwords.json"
    if is_there:
        file.write_text("{}", encoding="utf-8")
        file.chmod(0o644)
    before = os.umask(0)
    try:  # what is put right later was open for a moment
        monkeypatch.setattr(os, "chmod", lambda *_, **__: None)
        variables = airflow_variables(tmp_path, dags=tmp_path, port=1, password="tests")
    finally:
        os.umask(before)

    assert variables["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"] == str(file)
    assert json.loads(file.read_text(encoding="utf-8")) == {"admin": "tests"}
    assert file.stat().st_mode & 0o777 == 0o600

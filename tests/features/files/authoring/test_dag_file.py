"""What `topicops init --airflow` prints and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from topicops.cli import run

REPOSITORY = Path(__file__).parents[4]
TEXT = (REPOSITORY / "dags/topicops_dags.py").read_text(encoding="utf-8")


def test_the_dag_file_of_this_repository_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--airflow", "-"]) == 0
    assert capsys.readouterr().out == TEXT


def test_the_dag_file_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "dags" / "topicops_dags.py"
    for answer in ("written", "is there already, as it would be written"):
        assert run(["init", "--airflow", str(path.parent)]) == 0
        assert capsys.readouterr().out == f"{path}: {answer}\n"
    assert path.read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize("make", [lambda path: path.write_text("# mine\n"), Path.mkdir], ids=["a file", "a folder"])
def test_what_is_there_stays(make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "topicops_dags.py"
    make(path)
    assert run(["init", "--airflow", str(tmp_path)]) == 1
    assert (
        f"{path}: it has other lines; compare with `topicops init --airflow -`, or move it away"
        in capsys.readouterr().err
    )
    assert path.is_dir() or path.read_text() == "# mine\n"

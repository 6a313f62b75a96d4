from __future__ import annotations

import sys

import pytest

from topicops.edges.extras import has_extra, require_extra
from topicops.model.errors import MissingExtraError


@pytest.mark.parametrize(
    ("missing", "lacking"),
    [
        pytest.param("pyspark", {"spark", "quality", "airflow"}, id="no pyspark"),
        pytest.param("pyarrow", {"spark", "quality", "airflow"}, id="no pyarrow"),
        pytest.param("great_expectations", {"quality", "airflow"}, id="no Great Expectations"),
        pytest.param("airflow", {"airflow"}, id="no Airflow"),
        pytest.param("textwrap", set(), id="all there"),
    ],
)
def test_an_extra_is_there_when_all_its_packages_are(missing, lacking, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    assert {extra for extra in ("spark", "quality", "airflow") if not has_extra(extra)} == lacking


def test_a_folder_of_the_same_name_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "great_expectations").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for module in [name for name in sys.modules if name.partition(".")[0] == "great_expectations"]:
        monkeypatch.delitem(sys.modules, module)
    assert not has_extra("quality")


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ("spark", "Spark is not installed: run pip install 'topicops[spark]'"),
        ("quality", "Great Expectations is not installed: run pip install 'topicops[quality]'"),
        ("airflow", "Airflow is not installed: run pip install 'topicops[airflow]'"),
        ("local", "The local cluster is not installed: run pip install 'topicops[local]'"),
        (
            "zookeeper-sasl",
            "What a login of ZooKeeper needs is not installed: run pip install 'topicops[zookeeper-sasl]'",
        ),
    ],
)
def test_a_missing_extra_is_one_sentence_with_the_command(extra, sentence, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    monkeypatch.setitem(sys.modules, "airflow", None)
    monkeypatch.setitem(sys.modules, "topicops_local", None)
    monkeypatch.setitem(sys.modules, "puresasl", None)
    with pytest.raises(MissingExtraError) as raised:
        require_extra(extra)
    assert str(raised.value) == sentence

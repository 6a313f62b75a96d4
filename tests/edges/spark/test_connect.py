from collections.abc import Iterator

import pytest

from fixtures import spark_servers
from fixtures.spark_servers import SparkServer, printed_by

DIFF = """
from fixtures.spark_rows import diff_of_rows
from topicops.features.spark.edges.session import spark_session
from topicops.model.plans.delta import DesiredRow, LiveRow
from topicops.steps.planning.diff import diff

desired = [DesiredRow("orders", "present", 6, 3, None, "{}"), DesiredRow("new", "present", 1, 1, None, "{}")]
live = [LiveRow("orders", 3, 3, 3, "a", "{}"), LiveRow("foreign", 1, 1, 1, "b", "{}")]
with spark_session() as spark:
    print(type(spark).__module__)
    with spark_session() as lent:
        print(lent is spark)
    print(diff_of_rows(spark, desired, live) == diff(desired, live), diff_of_rows(spark, [], []) == diff([], []))
"""
QUALITY = """
from fixtures.spark_rows import check_rows
from topicops.features.spark.edges.session import spark_session
from topicops.features.quality.rules import DeletionRow
from topicops.model.runs.facts import PartitionRow

healthy = PartitionRow("orders", 0, 1, True, (1, 2, 3), (1, 2, 3), (), (), 2, 3, 3)
rows = {"partition": [healthy, PartitionRow("orders", 1, -1, False, (1, 2, 3), (), (1, 2, 3), (), 2, 3, 3)]}
with spark_session() as spark:
    now = {**rows, "deletion": [DeletionRow("old", 0, 0)]}
    results = check_rows("spark", "after", now, earlier=lambda: rows, spark=lambda: spark)
    print([(str(r.rule), [*r.examples[0].row.values()][:2], r.rows_failed_before) for r in results if not r.success])
"""

NAMED = """
import getpass, os
from topicops.features.spark.edges.session import spark_session, spark_step

with spark_session() as spark:
    with spark_step(spark, "prod cli/1 diff", rows=1):
        print(sorted(spark.getTags()), spark.client._user_id == getpass.getuser(), spark.range(2).count())
    print(sorted(spark.getTags()))
print("SPARK_CONNECT_MODE_ENABLED" in os.environ)
"""

REFUSED = """
from topicops.features.spark.edges.session import spark_session

try:
    with spark_session():
        pass
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    with spark_servers.connect_server(tmp_path_factory.mktemp("connect")) as server:
        yield server


def printed_on(server: SparkServer, program: str) -> list[str]:
    return printed_by(["-c", program], server).splitlines()


@pytest.mark.soak
def test_the_diff_runs_on_spark_connect_as_it_is(connect_server: SparkServer) -> None:
    assert printed_on(connect_server, DIFF) == ["pyspark.sql.connect.session", "True", "True True"]


@pytest.mark.soak
def test_the_quality_rules_run_on_spark_connect_as_they_are(connect_server: SparkServer) -> None:
    assert printed_on(connect_server, QUALITY) == [
        "[('Q11', ['orders', 1], 1), ('Q12', ['orders', 1], 1), ('Q13', ['orders', 1], 1), ('Q14', ['old', 0], None)]"
    ]


@pytest.mark.soak
def test_a_setting_that_a_running_server_cannot_take_is_named_with_where_it_comes_from(
    connect_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_SPARK_CONF", '{"spark.executor.memory": "2g"}')
    [said] = printed_on(connect_server, REFUSED)
    assert said.startswith("UsageError ")
    assert "a setting of TOPICOPS_SPARK_CONF or of the connection" in said
    assert '"spark.executor.memory"' in said


@pytest.mark.soak
def test_a_step_has_its_tag_and_its_user_and_a_proxy_is_not_asked_for_a_server_of_this_machine(
    connect_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("SPARK_REMOTE", "sc://nowhere")
    assert printed_on(connect_server, NAMED) == ["['topicops prod cli/1 diff'] True 2", "[]", "False"]


@pytest.mark.soak
def test_a_mistyped_setting_is_named_with_the_one_that_it_looks_like(
    connect_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_SPARK_CONF", '{"spark.sql.files.maxPartitonBytes": "1m"}')
    [said] = printed_on(connect_server, REFUSED)
    assert "knows no setting spark.sql.files.maxPartitonBytes; if you mean spark.sql.files.maxPartitionBytes" in said

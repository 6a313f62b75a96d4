"""The cluster's own policy for new topics has its say before the first request of a plan."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fixtures.live import cluster_spec, look
from fixtures.request_log import RequestLog
from fixtures.workspace import Workspace
from topicops.features.shared.java import find_java
from topicops_local.cluster import LocalCluster
from topicops_local.jars import kafka_jars
from topicops_local.state import Server

SENTENCE = "topics whose name ends in -tmp are not wanted here"
POLICY = f"""
import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.CreateTopicPolicy;

public class NoTmp implements CreateTopicPolicy {{
    public void configure(Map<String, ?> configs) {{}}
    public void close() {{}}
    public void validate(RequestMetadata request) {{
        if (request.topic().endsWith("-tmp")) throw new PolicyViolationException("{SENTENCE}");
    }}
}}
"""


class PolicedCluster(LocalCluster):
    """Its brokers find classes in the home folder too."""

    def _runtime(self, server: Server) -> tuple[Path, Sequence[Path]]:
        java, class_path = super()._runtime(server)
        return java, [*class_path, self.home]


def compile_policy(folder: Path) -> None:
    """Compile the class into ``folder``; the test is skipped where Java came without a compiler."""
    java = find_java()
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    if "jdk.compiler" not in modules:
        pytest.skip(f"{java} has no compiler: a policy class cannot be made (a JDK has one)")
    folder.mkdir()
    (folder / "NoTmp.java").write_text(POLICY, encoding="utf-8")
    jars = ":".join(map(str, kafka_jars()))
    compiler = [java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", jars, "-d", folder, folder / "NoTmp.java"]
    subprocess.run(compiler, check=True)


@pytest.fixture
def policed(cluster_home: Path) -> LocalCluster:
    compile_policy(cluster_home)
    return PolicedCluster.up(cluster_home, brokers=1, broker_properties={"create.topic.policy.class.name": "NoTmp"})


@pytest.mark.soak
def test_what_the_clusters_policy_refuses_is_told_before_the_first_request(
    policed: LocalCluster, workspace: Workspace
) -> None:
    workspace.cluster = cluster_spec(policed)
    workspace.policy = {"unattended": "destructive", "deleteActive": "allow"}
    workspace.topic("old", replicationFactor=1)
    assert (workspace.plan().status, workspace.apply().status) == (0, 0)
    workspace.topic("orders-tmp", replicationFactor=1)
    workspace.tombstone("old")
    assert workspace.plan().status == 0
    requests = RequestLog(policed)
    requests.begin()

    ended = workspace.apply()

    assert ended.status == 1, ended.err
    refused = f"the brokers' dry run answered POLICY_VIOLATION (44): {SENTENCE}; the brokers refuse this CreateTopics"
    assert f"create orders-tmp: failed ({refused}" in ended.err
    assert "delete old: not sent" in ended.err
    assert [*requests.read()] == []
    assert list(look(policed).topics) == ["old"]

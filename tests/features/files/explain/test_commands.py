"""``topicops explain``: each value with the layers under it, and each code with its cause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, LOCAL, PROD, topic, write
from topicops.cli import run
from topicops.model.codes import Code

EXPLAIN = ["explain", "clicks", "--environment", "local", "--topics", "."]
FILES = {
    "profiles/p.yaml": HEAD.format(kind="Profile", name="p") + "  partitions: 6\n  configs: {retention.ms: 2d}\n",
    "web/clicks.yaml": topic(
        "clicks", "spec:\n  profile: p\n  partitions: 9\n  configs: {retention.ms: 7d, segment.ms: null}\n"
    ),
    "web/old.yaml": topic("old", "lifecycle: {state: absent, reason: gone}\n"),
    "web/hand.yaml": topic("hand", "spec: {assignment: {0: [1, 2]}}\n"),
    "web/other.yaml": topic("other", metadata=", environments: [prod]"),
    **PROD,
}
OVERRIDE = "  overrides:\n    clicks: {partitions: 12}\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path(), FILES, local=LOCAL + OVERRIDE)


def test_each_value_is_shown_with_its_place_and_what_it_overrode(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(EXPLAIN) == 0

    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        "clicks in local, present (web/clicks.yaml:3)",
        "configs by the rules of Kafka 3.9 (cluster.kafkaVersion, by default)",
        "owner team-web topic, web/clicks.yaml:3",
        "profile p topic, web/clicks.yaml:5",
        "partitions 12 environment override, environments/local.yaml:10",
        "instead of 9 topic, web/clicks.yaml:6",
        "instead of 6 profile p, profiles/p.yaml:5",
        "instead of 3 environment defaults, environments/local.yaml:6",
        "replicationFactor 3 environment defaults, environments/local.yaml:6",
        "keyed true built in",
        "placement balanced built in",
        "rackAware true built in",
        "configs.retention.ms 604800000 (7d) topic, web/clicks.yaml:7",
        "instead of 2d profile p, profiles/p.yaml:6",
        "configs.segment.ms no override (null) topic, web/clicks.yaml:7",
    ]


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*EXPLAIN, "--format", "json"]) == 0

    answer = json.loads(capsys.readouterr().out)
    values = {value.pop("name"): value for value in answer.pop("values")}
    assert answer == {
        "format_version": "1.0",
        "topic": "clicks",
        "environment": "local",
        "state": "present",
        "file": "web/clicks.yaml",
        "line": 3,
        "kafka_version": "3.9",
        "kafka_version_place": None,
    }
    assert values["configs.retention.ms"] == {
        "value": "604800000",
        "human": "7d",
        "later": None,
        "written": "7d",
        "layer": "topic",
        "file": "web/clicks.yaml",
        "line": 7,
        "column": 27,
        "overrode": [{"written": "2d", "layer": "profile p", "file": "profiles/p.yaml", "line": 6, "column": 27}],
    }
    assert (values["keyed"]["layer"], values["keyed"]["file"]) == ("built in", None)
    assert values["configs.segment.ms"]["value"] is None


def test_a_value_that_a_later_release_refuses_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    local = LOCAL.replace("sandbox", 'sandbox, kafkaVersion: "2.8"')
    written = "segment.bytes: 64KiB, message.format.version: 2.7, retention.ms: 7d"
    write(Path(), {"web/clicks.yaml": topic("clicks", f"spec: {{configs: {{{written}}}}}\n")}, local=local + OVERRIDE)

    assert run(EXPLAIN) == 0

    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert shown[1] == "configs by the rules of Kafka 2.8 (cluster.kafkaVersion, environments/local.yaml:5)"
    assert [line for line in shown if "configs." in line] == [
        "configs.message.format.version 2.7 (message.format.version is gone since Kafka 4.0) topic, web/clicks.yaml:4",
        "configs.retention.ms 604800000 (7d) topic, web/clicks.yaml:4",
        "configs.segment.bytes 65536 (64KiB, Kafka 4.1 takes 1048576 or more) topic, web/clicks.yaml:4",
    ]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        pytest.param(
            "old",
            [
                "old in local, absent (web/old.yaml:3)",
                "owner team-web topic, web/old.yaml:3",
                "lifecycle.state absent topic, web/old.yaml:4",
                "lifecycle.reason gone topic, web/old.yaml:4",
            ],
            id="a tombstone has no values",
        ),
        pytest.param(
            "hand",
            [
                "hand in local, present (web/hand.yaml:3)",
                "owner team-web topic, web/hand.yaml:3",
                "assignment {0: [1, 2]} topic, web/hand.yaml:4",
                "partitions 1 assignment, web/hand.yaml:4",
                "instead of 3 environment defaults, environments/local.yaml:6",
                "replicationFactor 2 assignment, web/hand.yaml:4",
                "instead of 3 environment defaults, environments/local.yaml:6",
                "keyed true built in",
                "placement balanced built in",
                "rackAware true built in",
            ],
            id="an assignment stands above all layers",
        ),
    ],
)
def test_other_topics_are_explained_too(name: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", name, "--environment", "local", "--topics", "."]) == 0

    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == lines


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("click", "topicops: no topic is called 'click'; did you mean clicks?\n"),
        ("other", "topicops: other is not for local: metadata.environments, web/other.yaml:3\n"),
    ],
)
def test_a_topic_that_is_not_there_is_one_line(name: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", name, "--environment", "local", "--topics", "."]) == 1

    assert tuple(capsys.readouterr()) == ("", message)


def test_files_with_errors_are_shown_instead(capsys: pytest.CaptureFixture[str]) -> None:
    Path("web/bad.yaml").write_text(topic("bad", "spec: {partitions: few}\n"))

    assert run(EXPLAIN) == 1

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("web/bad.yaml:4:20: error TOP203: ")


def test_hidden_characters_are_shown_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    Path("web/clicks.yaml").write_text(topic("clicks").replace("team-web", '"team\\u202e\\e"'))

    assert run(EXPLAIN) == 0

    assert r"team\u202e\x1b" in capsys.readouterr().out


@pytest.mark.parametrize("written", ["TOP204", "top204", "204", " 204 "])
def test_a_code_is_found_as_people_type_it(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", written]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "TOP204: ambiguous scalar"
    assert [line.split(":")[0].strip() for line in lines[2:]] == ["Cause", "Example", "Fix"]


@pytest.mark.parametrize(("written", "page"), [("V08", "checks.md"), ("q13", "quality.md#q13")])
def test_checks_and_quality_rules_are_explained_and_lead_to_their_page(
    written: str, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", written]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{written.upper()}: ")
    assert [line.split(":")[0].strip() for line in lines[2:]] == ["Cause", "Fix", "More"]
    assert lines[-1].endswith(f"docs/reference/{page}")


def test_a_topic_that_is_called_like_a_code_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    Path("web/v08.yaml").write_text(topic("v08"))
    assert [run(["explain", word, "--environment", "local", "--topics", "."]) for word in ("v08", "V8")] == [0, 0]
    out = capsys.readouterr().out
    assert out.startswith("v08 in local, present")
    assert "\nV08: " in out


def test_all_codes_are_listed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0

    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(Code)


@pytest.mark.parametrize(
    ("written", "nearest"), [("TOP299", "TOP301"), ("999", "TOP813"), ("V18", "V"), ("9" * 9, "TOP")]
)
def test_a_code_that_is_none_names_the_nearest(written: str, nearest: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", written]) == 1

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"the nearest is {nearest}" in err
    assert err[:-1].isprintable()

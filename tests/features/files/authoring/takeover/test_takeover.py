"""Files of other tools, taken over: every case to the letter, and nothing hostile ends in more than a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import pytest

from topicops.cli.shared_options import unrecorded_run
from topicops.edges.specs.open_files import regular_text
from topicops.features.files.authoring.drafts import ImportResult
from topicops.features.files.authoring.importable import TopicOwners
from topicops.features.files.authoring.takeover.edges.texts import SourceFile, documents_of
from topicops.features.files.authoring.takeover.formats import FORMATS
from topicops.features.files.authoring.takeover.hcl import EXPRESSION, blocks_of
from topicops.features.files.authoring.takeover.taking_over import Source, take_over
from topicops.model.errors import UsageError

DATA = Path(__file__).parents[4] / "data/import-cases.json"


class Wanted(TypedDict):
    exit: int
    files: dict[str, str]
    left_out: list[dict[str, str]]
    not_converted: list[dict[str, str | None]]


class Case(TypedDict):
    id: str
    format: str
    options: list[str]
    existing: dict[str, str]
    files: dict[str, str]
    expect: Wanted


class Cases(TypedDict):
    base: dict[str, str]
    cases: list[Case]


GIVEN: Cases = json.loads(DATA.read_text(encoding="utf-8"))


def lay(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def taken(folder: Path, name: str, *options: str, path: str = "source") -> ImportResult:
    lay(folder, {file: text for file, text in GIVEN["base"].items() if not (folder / file).exists()})
    named = dict(zip(options[::2], options[1::2], strict=True))
    source = Source(
        format_name=name, path=folder / path, cluster=named.get("--cluster"), owner_from=named.get("--owner-from")
    )
    run = unrecorded_run("prod", folder / "topics")
    return take_over(run, TopicOwners(otherwise="team-x"), source, domain=None, only=None)


def topic_files(folder: Path) -> dict[str, str | None]:
    return {p.relative_to(folder).as_posix(): regular_text(p) for p in folder.glob("topics/**/*") if p.is_file()}


@pytest.mark.parametrize("case", GIVEN["cases"], ids=lambda case: case["id"])
def test_a_case_comes_out_to_the_letter(tmp_path: Path, case: Case) -> None:
    lay(tmp_path, {**GIVEN["base"], **case["existing"]})
    before = topic_files(tmp_path)
    lay(tmp_path / "source", case["files"])

    result = taken(tmp_path, case["format"], *case["options"])

    written = {name: text for name, text in topic_files(tmp_path).items() if before.get(name) != text}
    assert written == case["expect"]["files"]
    left = {entry.topic: entry.code or "" for entry in result.left_out}
    assert left == {entry["topic"]: entry["code"] or left[entry["topic"]] for entry in case["expect"]["left_out"]}
    assert all(entry.file and entry.line for entry in (*result.left_out, *result.not_converted))
    for entry in case["expect"]["not_converted"]:
        said = [each.message for each in result.not_converted if each.topic == entry["topic"]]
        assert any(str(entry["what"]) in message for message in said), (entry, said)


LINK = "a link"
LAUGHS = "a: &a0 [x]\n" + "".join(f"b{n}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(12))


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        pytest.param("strimzi", {"t.yaml": "kind: {{ .Values.x }}\n"}, "t.yaml:1: this is a template", id="a template"),
        pytest.param("topicctl", {"t.yaml": "[" * 200_000}, "t.yaml:1: more than 100 levels", id="deep YAML"),
        pytest.param("terraform", {"t.json": "[" * 200_000}, "t.json:1: no JSON that can be read", id="deep JSON"),
        pytest.param("terraform", {"t.json": "[" * 200 + "]" * 200}, "more than 100 levels", id="deep and sound JSON"),
        pytest.param("terraform", {"t.tf": 'a "b" {' * 300}, "t.tf:1: no Terraform that can be read", id="deep blocks"),
        pytest.param("terraform", {"t.tf": f'a "b" {{\nx = {"[" * 300}'}, "levels", id="deep lists"),
        pytest.param("julie", {"t.yaml": LAUGHS}, "no topic of the form julie", id="aliases of aliases"),
        pytest.param("julie", {"t.yaml": "a: &a [*a]\n"}, "stands before its anchor, or inside it", id="a circle"),
        pytest.param("jikkou", {"t.yaml": "a: [\n"}, "t.yaml:2: no YAML that can be read", id="broken YAML"),
        pytest.param("jikkou", {"t.yaml": b"\xff\xfe"}, "no UTF-8 text", id="bytes"),
        pytest.param(
            "jsonl", {"t.jsonl": '{"name": "a"}\n{"nme": 1}\n'}, "t.jsonl:2: write a JSON object", id="no name"
        ),
        pytest.param("jsonl", {"t.jsonl": "nothing\n"}, "t.jsonl:1: no JSON", id="no JSON"),
        pytest.param("strimzi", {}, "no such file or folder", id="nothing there"),
        pytest.param("strimzi", {"x.md": "#"}, "no file there ends in .yaml, .yml, .json", id="no file of the kind"),
        pytest.param("strimzi", {"x.yaml": LINK}, "no file there ends in", id="links are not followed"),
        pytest.param("helm", {"x.yaml": ""}, "'helm' is not known; there are: terraform, strimzi", id="no such format"),
        pytest.param(
            "helmsman", {"x.yaml": "topics: [{name: a, clusters: {e: {}}}]"}, "--cluster e", id="which cluster"
        ),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    tmp_path: Path, name: str, files: Mapping[str, str | bytes], said: str
) -> None:
    lay(tmp_path / "source", {file: text for file, text in files.items() if text != LINK})
    if LINK in files.values():
        (tmp_path / "source").mkdir(exist_ok=True)
        (tmp_path / "source/x.yaml").symlink_to(tmp_path / "topics")
    with pytest.raises(UsageError) as found:
        taken(tmp_path, name, path="source" if files else "none")
    assert said in str(found.value)
    assert "\n" not in str(found.value)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    lay(tmp_path / "source", {"t.yaml": ""})
    with (tmp_path / "source/t.yaml").open("rb+") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(UsageError, match="files of at most 16 MiB are read"):
        taken(tmp_path, "strimzi")


def test_no_secret_of_terraform_is_shown(tmp_path: Path) -> None:
    good = 'resource "kafka_topic" "a" {\n  name = "a"\n  partitions = 3\n  replication_factor = 3\n}\n'
    secret = 'provider "kafka" {\n  sasl_password = "hunter2"\n  key = <<EOT\nhunter2\nEOT\n'
    lay(tmp_path / "source", {"t.tf": good + secret})
    with pytest.raises(UsageError) as found:
        taken(tmp_path, "terraform")
    assert str(found.value).startswith("t.tf:11: no Terraform that can be read")
    assert "hunter2" not in str(found.value)
    lay(tmp_path / "source", {"t.tf": f"{good}{secret}}}\n"})
    assert taken(tmp_path, "terraform").imported == ("a",)


STREAM = '{"name": "a.b", "partitions": %s, "replication_factor": 3, "configs": {%s}}\n'


@pytest.mark.parametrize(
    ("lines", "left", "noted"),
    [
        pytest.param(STREAM % (3, '"retention.ms": 2.7e+9'), {}, [], id="a whole number with exponent"),
        pytest.param(STREAM % (3, '"retention.ms": 2.5'), {"a.b": "TOP306"}, [], id="no whole number"),
        pytest.param(STREAM % ('"x"', ""), {"a.b": "TOP205"}, [], id="no number of partitions"),
        pytest.param(STREAM % (3, '"remote.log.copy.disable": "yes"'), {}, [], id="yes"),
        pytest.param(
            STREAM % (3, "") + STREAM % (4, ""), {"a.b": "TOP301"}, [], id="one name twice, with other values"
        ),
        pytest.param(STREAM % (3, "") + STREAM % (3, ""), {}, [], id="one name twice, and equal"),
        pytest.param(
            STREAM % (3, "") + STREAM.replace("a.b", "a_b") % (3, ""), {"a_b": "TOP302"}, [], id="one name to metrics"
        ),
        pytest.param(
            STREAM % (3, "") + STREAM.replace("a.b", "A.b") % (3, ""), {"A.b": "TOP303"}, [], id="differs by case"
        ),
        pytest.param(STREAM % (-1, ""), {}, ["partitions -1"], id="the brokers' default"),
        pytest.param('{"name": "a", "x": 1}\n', {"a": "TOP201"}, [], id="an unknown key"),
        pytest.param(
            json.dumps({"name": "a", "labels": {"k/l": "v", "k" * 64: "v"}, "description": "word " * 500}) + "\n",
            {},
            ["partitions not given", "replicas not given", "label kkk", "description: cut at a word"],
            id="labels and a long description",
        ),
        pytest.param(
            '{"name": "a.c", "profile": "p", "configs": {"retention.ms": 1}}\n' * 2
            + '{"name": "a.d", "profile": "p", "configs": {"retention.ms": 1, "nobodys.x": 2}}\n',
            {},
            ["nobodys.x"],
            id="a profile",
        ),
    ],
)
def test_values_become_those_of_topicops_or_are_named(
    tmp_path: Path, lines: str, left: dict[str, str], noted: list[str]
) -> None:
    lay(tmp_path, {"source/t.jsonl": lines})
    result = taken(tmp_path, "jsonl")
    assert {entry.topic: entry.code for entry in result.left_out} == left
    said = [entry.message for entry in result.not_converted]
    assert all(any(text in message for message in said) for text in noted), said
    assert len(result.imported) == len({json.loads(line)["name"] for line in lines.splitlines()} - left.keys())
    assert result.named_profiles == (("p",) if "profile" in lines else ())


def test_merge_keys_and_anchors_are_read_and_each_document_has_its_own() -> None:
    text = "base: &b {x: 010, y: on}\nuse: {<<: *b, y: off}\nmore: {y: 1, <<: [*b]}\n---\nz: ~\n"
    [first, second] = [document for _, document in documents_of([SourceFile("a.yaml", text)])]
    assert (dict(first.map("use")), dict(first.map("more"))) == ({"x": "010", "y": "off"}, {"y": "1", "x": "010"})
    assert (dict(second), first.line_of("more"), second.line) == ({"z": None}, 3, 5)


def test_of_terraform_the_literals_are_read_and_all_else_is_an_expression() -> None:
    text = """
locals { x = [for a in b : a] }   # words
resource "t" "n" {
  text = "a\\"b\\\\ $5"  // more
  sum  = 1 + 2
  call = f({ a = 1
    b = 2 })
  list = ["a", true, -1.5]
  map  = { "k.l" = null, m : "v" }
  some = ["a", var.x]
  long = <<-EOT
    two
    EOT
  told = "${var.x}-y"
  /* and
     so on */
  inner { deep = "x" }
}
"""
    [_, (words, body)] = blocks_of(SourceFile("a.tf", text))
    assert words == ("resource", "t", "n")
    assert {name: value for name, value in body.items() if value == EXPRESSION} == dict.fromkeys(
        ("sum", "call", "some", "told"), EXPRESSION
    )
    assert (body["text"], body["list"], body["map"]) == ('a"b\\ $5', ["a", "true", "-1.5"], {"k.l": None, "m": "v"})
    assert (body["long"], body["inner"], body.line_of("told")) == ("    two\n", {"deep": "x"}, 14)


def test_the_help_names_every_format() -> None:
    from topicops.features.files.authoring.commands import FORMATS_SHOWN

    assert FORMATS_SHOWN.replace(" or", ",").split(", ") == list(FORMATS)

"""The benchmarks and the counter of lines, as far as they can be held true without running one."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.airflow import covered_s
from benchmarks.diff import rows
from benchmarks.harness import (
    Benchmark,
    BenchmarkError,
    Better,
    Comparison,
    Ratio,
    Side,
    interleave,
    machine,
    ratio_of,
    run,
    timed,
)
from benchmarks.process_tree import Usage, run_measured
from benchmarks.size import Size, crowded, passed, rooms, size_of, sums
from benchmarks.verify import require_healthy

from fakes.changes import create_topic
from topicops.model.errors import ClusterError
from topicops.model.plans.delta import TopicClass
from topicops.model.runs.results import Check, Verdict
from topicops.steps.planning.diff import diff

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"


def comparison(goal: float, better: Better = "higher") -> Comparison:
    return Comparison(id="slow-to-fast", numerator="slow", denominator="fast", goal=goal, better=better)


def benchmark(name: str, *, goal: float) -> Benchmark:
    """One whose slow side is four times as slow as its fast one."""

    @contextmanager
    def sides(topics: int) -> Iterator[Mapping[str, Side]]:
        yield {"slow": lambda: 4.0 * topics, "fast": lambda: 1.0 * topics}

    def comparisons(topics: int) -> Sequence[Comparison]:
        return (comparison(goal),)

    return Benchmark(name=name, topics=10, rounds=3, comparisons=comparisons, sides=sides)


def check(topic: str, verdict: Verdict = Verdict.HEALTHY) -> Check:
    return Check(id="V01", topic=topic, verdict=verdict)


def written(folder: Path, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_both_sides_run_in_every_round_and_in_reverse_every_other_one() -> None:
    calls: list[str] = []

    def side(name: str) -> Side:
        def call() -> float:
            calls.append(name)
            return len(calls)

        return call

    measured = interleave({"a": side("a"), "b": side("b")}, rounds=3)
    assert "".join(calls) == "ab" + "ab" + "ba" + "ab"
    assert measured == {"a": [3, 6, 7], "b": [4, 5, 8]}


def test_a_ratio_is_that_of_the_medians_whatever_one_round_did() -> None:
    measured = {"slow": [6.0, 900.0, 5.0], "fast": [2.0, 0.001, 3.0]}
    assert ratio_of(comparison(2), measured) == Ratio(
        id="slow-to-fast", value=3.0, goal=2, better="higher", numerator=6.0, denominator=2.0
    )


@pytest.mark.parametrize(
    ("better", "value", "is_met"),
    [
        pytest.param("higher", 2.01, True, id="above, where more is better"),
        pytest.param("higher", 2.0, True, id="just there, where more is better"),
        pytest.param("higher", 1.99, False, id="below, where more is better"),
        pytest.param("lower", 1.99, True, id="below, where less is better"),
        pytest.param("lower", 2.0, True, id="just there, where less is better"),
        pytest.param("lower", 2.01, False, id="above, where less is better"),
    ],
)
def test_a_goal_is_met_from_its_own_side(better: Better, value: float, is_met: bool) -> None:
    ratio = Ratio(id="one", value=value, goal=2.0, better=better, numerator=value, denominator=1.0)
    assert ratio.is_met == is_met


def test_met_goals_exit_0_and_the_file_has_the_projects_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--results", str(tmp_path)], benchmarks=[benchmark("quick", goal=4)]) == 0
    assert written(tmp_path, "quick") == {
        "name": "quick",
        "machine": machine(),
        "rounds": 3,
        "ratios": [
            {"id": "slow-to-fast", "value": 4.0, "goal": 4, "better": "higher", "numerator": 40, "denominator": 10}
        ],
    }
    assert ">= 4, met" in capsys.readouterr().out


def test_a_missed_goal_exits_1_once_everything_has_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = [benchmark("missing", goal=5), benchmark("meeting", goal=3)]
    assert main(["--results", str(tmp_path)], benchmarks=both) == 1
    assert {path.stem for path in tmp_path.iterdir()} == {"missing", "meeting"}
    assert ">= 5, MISSED" in capsys.readouterr().out


@pytest.mark.parametrize(("goal", "why"), [(5, "the slow side waits"), (4, None)], ids=["missed", "met"])
def test_a_result_says_why_its_goal_is_missed(goal: float, why: str | None, tmp_path: Path) -> None:
    one = benchmark("one", goal=goal)
    explained = replace(one, comparisons=lambda _: (replace(comparison(goal), why="the slow side waits"),))
    main(["--results", str(tmp_path)], benchmarks=[explained])
    assert json.loads((tmp_path / "one.json").read_text())["ratios"][0].get("why") == why


@pytest.mark.parametrize("file", sorted((FOLDER / "results").glob("*.json")), ids=lambda file: file.stem)
def test_no_result_keeps_a_missed_goal_without_a_word(file: Path) -> None:
    ratios = [Ratio(**ratio) for ratio in json.loads(file.read_text()).get("ratios", [])]
    silent = [ratio.id for ratio in ratios if not ratio.is_met and not ratio.why]
    assert not silent


@pytest.mark.parametrize("error", [ClusterError("no server answers"), BenchmarkError("the sides disagree")], ids=str)
def test_a_benchmark_that_cannot_run_exits_1_with_a_sentence_and_stops_no_other(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def cannot_start(topics: int) -> AbstractContextManager[Mapping[str, Side]]:
        raise error

    broken = Benchmark(name="broken", topics=1, rounds=1, comparisons=lambda topics: (), sides=cannot_start)
    assert main(["--results", str(tmp_path)], benchmarks=[broken, benchmark("quick", goal=1)]) == 1
    assert [path.stem for path in tmp_path.iterdir()] == ["quick"]
    assert capsys.readouterr().err == f"broken: {error}\n"


def test_only_the_one_that_is_named_runs(tmp_path: Path) -> None:
    both = [benchmark("one", goal=5), benchmark("other", goal=3)]
    assert main(["other", "--results", str(tmp_path)], benchmarks=both) == 0
    assert [path.stem for path in tmp_path.iterdir()] == ["other"]


def test_size_and_rounds_can_be_asked_for(tmp_path: Path) -> None:
    main(["--topics", "7", "--rounds", "5", "--results", str(tmp_path)], benchmarks=[benchmark("quick", goal=1)])
    found = written(tmp_path, "quick")
    assert found["rounds"] == 5
    assert "'numerator': 28.0" in str(found["ratios"])


@pytest.mark.parametrize("arguments", [["unheard-of"], ["--rounds", "0"], ["--topics", "many"]])
def test_what_cannot_be_run_is_refused(arguments: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--results", str(tmp_path)], benchmarks=[benchmark("quick", goal=1)])
    assert ended.value.code == 2
    assert list(tmp_path.iterdir()) == []


def test_what_the_sides_started_is_gone_even_when_one_of_them_fails() -> None:
    running: list[str] = []

    @contextmanager
    def sides(topics: int) -> Iterator[Mapping[str, Side]]:
        running.append("server")
        try:
            yield {"slow": timed(lambda: 1 // 0)}
        finally:
            running.clear()

    broken = Benchmark(name="broken", topics=1, rounds=1, comparisons=lambda topics: (), sides=sides)
    with pytest.raises(ZeroDivisionError):
        run(broken)
    assert running == []


def test_a_comparison_may_divide_something_else_than_medians() -> None:
    tries = Comparison(id="failed", numerator="failed", denominator="all", goal=0, better="lower", of=sum)
    found = ratio_of(tries, {"failed": [0, 0, 1], "all": [4, 3, 3]})
    assert (found.numerator, found.denominator, found.value, found.is_met) == (1, 10, 0.1, False)


@pytest.mark.parametrize(
    ("times", "covered"),
    [([], 0), ([(0, 2), (5, 6)], 3), ([(3, 5), (0, 4)], 5), ([(0, 9), (1, 2), (3, 10)], 10), ([(0, 1), (1, 2)], 2)],
    ids=["none", "apart", "one into the other", "one inside the other", "one after the other"],
)
def test_steps_that_run_side_by_side_count_once(times: Sequence[tuple[float, float]], covered: float) -> None:
    assert covered_s(times) == covered


def test_memory_of_a_program_that_never_ran_keeps_no_allowance() -> None:
    usage = Usage(peak_by_pid={7: ("python3", 90.0), 8: ("python3", 120.0), 9: ("java", 300.0)})
    assert (usage.peak_of("python"), usage.peak_of("java"), usage.peak_of_programs) == (120.0, 300.0, 420.0)
    with pytest.raises(BenchmarkError, match="no process of topicops was seen, but java, python3"):
        usage.peak_of("topicops")


def test_a_side_whose_command_fails_is_not_measured() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no server answers')"]
    with pytest.raises(BenchmarkError, match="ended with 1:\nno server answers"):
        run_measured(command, cwd=ROOT, environment={})


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        pytest.param([], "not verified: one, two", id="no check at all"),
        pytest.param([check("one")], "not verified: two", id="a topic without a check"),
        pytest.param([check("one"), check("two", Verdict.NOT_CHECKED)], "not healthy: ", id="a sick topic"),
    ],
)
def test_a_verdict_that_is_not_about_each_change_is_not_measured(checks: list[Check], said: str) -> None:
    changes = [create_topic("one", (1, 2, 3)), create_topic("two", (1, 2, 3))]
    require_healthy([check("one"), check("two")], changes)
    with pytest.raises(BenchmarkError, match=said):
        require_healthy(checks, changes)


def test_every_module_that_has_a_benchmark_is_listed_under_its_own_name() -> None:
    modules = [path.stem for path in FOLDER.glob("*.py") if "\nBENCHMARK = " in path.read_text(encoding="utf-8")]
    assert {module: import_module(f"benchmarks.{module}").BENCHMARK for module in modules} == {
        listed.name: listed for listed in BENCHMARKS
    }


def test_the_command_of_make_bench_names_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "{" + ",".join(listed.name for listed in BENCHMARKS) + "}" in capsys.readouterr().out
    assert "PYTHONPATH=tests $(BIN)/python -m benchmarks $(ONLY)" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("listed", BENCHMARKS, ids=lambda listed: listed.name)
def test_each_ratio_has_an_id_of_its_own_that_tells_its_size(listed: Benchmark) -> None:
    ids = [each.id for size in (1000, 30_000) for each in listed.comparisons(size)]
    assert len(set(ids)) == len(ids) > 0


def test_the_rows_to_compare_differ_as_they_say() -> None:
    counts = diff(*rows(2000)).counts
    found = {topic_class: count for topic_class, count in counts.items() if count}
    assert found == {TopicClass.MISSING: 10, TopicClass.UNMANAGED: 10, TopicClass.DIFFERENT: 40, TopicClass.SAME: 1940}


@pytest.mark.parametrize("listed", BENCHMARKS, ids=lambda listed: listed.name)
def test_the_kept_result_of_each_has_its_size_and_goals_and_adds_up(listed: Benchmark) -> None:
    found = json.loads((FOLDER / "results" / f"{listed.name}.json").read_text(encoding="utf-8"))
    expected = {each.id: (each.goal, each.better) for each in listed.comparisons(listed.topics)}
    assert found.keys() == {"name", "machine", "rounds", "ratios"}
    assert found["name"] == listed.name
    assert {ratio["id"]: (ratio["goal"], ratio["better"]) for ratio in found["ratios"]} == expected
    for ratio in found["ratios"]:
        assert ratio["value"] == pytest.approx(ratio["numerator"] / ratio["denominator"], abs=0.001)


def test_the_machine_is_described_and_not_named() -> None:
    described = machine()
    assert {"cores", "memory_gib", "python", "java", "pyspark"} <= described.keys()
    assert platform.node() not in map(str, described.values())
    assert not [value for value in map(str, described.values()) if value.startswith(("/", "~")) or "\\" in value]


# ---- The counter of the code's size ----


MODULE = '''"""A text."""

import json  # at the top


class Point:
    x: int
    """Number of steps to the right."""


def of(text):
    import ast

    return json, ast
'''


def test_a_module_is_counted_by_kind_of_line() -> None:
    assert size_of(MODULE) == Size(files=1, lines=14, code=4, docs=2, late_imports=1)


def test_rooms_are_two_levels_deep_and_the_loop_is_a_part_of_the_package(tmp_path: Path) -> None:
    for name in ("model/a.py", "steps/planning/deep/b.py", "cli/c.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("x = 1\n", encoding="utf-8")
    found = rooms(tmp_path)
    assert {room: size.lines for room, size in found.items()} == {"cli": 1, "model": 1, "steps/planning": 1}
    assert {name: size.lines for name, size in sums(found).items()} == {"package": 3, "loop": 2}


def test_a_limit_that_is_passed_is_named(tmp_path: Path) -> None:
    for number in range(15):
        (tmp_path / f"m{number}.py").touch()
    totals = {"package": Size(lines=55_001), "loop": Size(lines=31_000)}
    assert list(passed(totals, crowded(tmp_path))) == [
        "package: 55001 lines, more than 55000",
        ".: 15 siblings, more than 14",
    ]

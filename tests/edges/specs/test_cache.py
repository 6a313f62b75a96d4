"""What is kept from one run to the next, by a real git: it is used, and it never shows."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cases.test_bad_inputs import CASES, write_files
from topicops.edges.specs.cache import CachedDiagnostics, DiagnosticsCache, decisive_files, users_cache
from topicops.edges.specs.reader import read_tree
from topicops.flow.spec_files import validate_files
from topicops.model.errors import UsageError

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
TOPIC = "apiVersion: topicops/v1\nkind: Topic\nmetadata: {{name: {name}, owner: team-web}}\n{body}"
ENVIRONMENT = (
    "apiVersion: topicops/v1\nkind: Environment\nmetadata: {name: local}\n"
    "spec: {cluster: {class: sandbox, zookeeper: {hosts: zk}, kafka: {bootstrapServers: b}},\n"
    "  defaults: {partitions: 3, replicationFactor: 3}}\n"
)
NAMES = ("a", "b", "c", "d")


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def topic(name: str, body: str = "spec: {}\n") -> str:
    return TOPIC.format(name=name, body=body)


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    """Four topics and an environment, committed a while ago."""
    folder = tmp_path / "topics"
    for name, text in {
        "environments/local": ENVIRONMENT,
        **{f"web/{name}": topic(name) for name in NAMES},
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(text)
        os.utime(folder / f"{name}.yaml", (1_700_000_000, 1_700_000_000))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Describe the topics")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> DiagnosticsCache:
    return DiagnosticsCache(tmp_path / "cache")


def judged(
    topics: Path, cache: DiagnosticsCache, *, environment: str | None = None, now: datetime = NOW
) -> CachedDiagnostics:
    return validate_files(topics, environment=environment, now=now, cache=cache)


def assert_it_does_not_show(topics: Path, cache: DiagnosticsCache, *, now: datetime = NOW) -> None:
    """Tree and diagnostics are those of files that are read, both while the cache is filled and when it is used."""
    plain, read = judged(topics, DiagnosticsCache(None), now=now), read_tree(topics)
    for _ in range(2):
        found = judged(topics, cache, now=now)
        assert (found.diagnostics, found.files) == (plain.diagnostics, plain.files)
    assert cache.read(cache.list_folder(topics))[0] == read


_opened: list[str] | None = None


def _note_open(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _opened is not None:
        _opened.append(str(arguments[0]))


sys.addaudithook(_note_open)


@contextmanager
def opened_below(folder: Path) -> Iterator[list[str]]:
    """Names of the files below ``folder`` that this process opens meanwhile."""
    global _opened
    _opened, names = [], list[str]()
    try:
        yield names
    finally:
        names += sorted(Path(path).name for path in _opened if path.startswith(str(folder)))
        _opened = None


def test_unchanged_files_are_not_opened(topics: Path, cache: DiagnosticsCache) -> None:
    first = judged(topics, cache)

    with opened_below(topics) as opened:
        again = judged(topics, cache)

    assert (opened, again) == ([], first)


def test_after_a_change_all_files_are_opened(topics: Path, cache: DiagnosticsCache) -> None:
    """Nodes are not cached: reading them again costs less than the nodes of the cache did."""
    judged(topics, cache)
    (topics / "web" / "b.yaml").write_text(topic("b", "spec: {partitions: 4}\n"))

    with opened_below(topics) as opened:
        judged(topics, cache)

    assert opened == ["a.yaml", "b.yaml", "c.yaml", "d.yaml", "local.yaml"]


def test_a_committed_change_is_opened_once(topics: Path, cache: DiagnosticsCache) -> None:
    judged(topics, cache)
    (topics / "web" / "b.yaml").write_text(topic("b", "spec: {partitions: 4}\n"))
    git(topics, "commit", "-qam", "Grow b")
    judged(topics, cache)

    with opened_below(topics) as opened:
        judged(topics, cache)

    assert opened == []


def test_another_checkout_of_the_same_files_at_the_same_place_is_known(topics: Path, cache: DiagnosticsCache) -> None:
    judged(topics, cache)
    git(topics, "rm", "-rq", "--cached", ".")
    git(topics, "add", ".")

    with opened_below(topics) as opened:
        judged(topics, cache)

    assert opened == []


def test_a_folder_where_nothing_changed_is_judged_once(topics: Path, cache: DiagnosticsCache) -> None:
    (topics / "web" / "b.yaml").write_text(topic("b", "spec: {partitions: 010}\n"))
    git(topics, "commit", "-qam", "Grow b")
    first = judged(topics, cache, environment="local")

    later = judged(topics, cache, environment="local", now=NOW + timedelta(hours=1))

    assert later == first  # `since` too: nobody looked again
    assert [diagnostic.code for diagnostic in later.diagnostics] == ["TOP204"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda web: (web / "a.yaml").write_text(topic("a", "spec: []\n")), id="edited, same size"),
        pytest.param(lambda web: (web / "a.yaml").unlink(), id="removed"),
        pytest.param(lambda web: (web / "e.yaml").write_text(topic("f")), id="new"),
        pytest.param(lambda web: (web / "a.yaml").rename(web / "f.yaml"), id="renamed"),
        pytest.param(lambda web: (web.parent / "e.yml").write_text(""), id="of no kind"),
        pytest.param(lambda web: os.mkfifo(web / "e.yaml"), id="a pipe"),
        pytest.param(lambda web: (web / "e.yaml").mkdir(), id="an empty folder"),
    ],
)
def test_a_change_is_judged_whatever_was_said_before(
    topics: Path, cache: DiagnosticsCache, change: Callable[[Path], object]
) -> None:
    before = judged(topics, cache)
    change(topics / "web")

    after = judged(topics, cache)

    assert (after.diagnostics, after.files) != (before.diagnostics, before.files)
    assert_it_does_not_show(topics, cache)


def test_what_depends_on_the_time_is_said_again_when_it_comes(topics: Path, cache: DiagnosticsCache) -> None:
    pause = "spec: {}\nlifecycle: {state: paused, reason: Moving., until: 2030-03-01T00:00:00Z}\n"
    (topics / "web" / "a.yaml").write_text(topic("a", pause))
    exception = "{topic: b, code: TOP320, reason: Old., until: 2030-02-10T00:00:00Z}"
    limits = f"limits: {{partitionsPerTopic: 2}}, policy: {{exceptions: [{exception}]}}}}\n"
    environment = topics / "environments" / "local.yaml"
    environment.write_text(environment.read_text().replace("}}\n", "}, " + limits))
    git(topics, "commit", "-qam", "Pause a")

    seen = []
    for day in (0, 1, 9, 10, 21, 22, 28, 29, 40, 5, 0):  # the clock may go back too
        assert_it_does_not_show(topics, cache, now=NOW + timedelta(days=day))
        seen.append([d.code for d in judged(topics, cache, now=NOW + timedelta(days=day)).diagnostics])

    assert seen[0] == seen[1] == seen[-1]
    assert len({str(codes) for codes in seen}) >= 3


def test_each_environment_has_its_own_diagnostics(topics: Path, cache: DiagnosticsCache) -> None:
    other = ENVIRONMENT.replace("local", "other").replace("partitions: 3", "partitions: 300")
    (topics / "environments" / "other.yaml").write_text(other)
    git(topics, "add", ".")

    codes = [[d.code for d in judged(topics, cache, environment=name).diagnostics] for name in ("local", "other") * 2]

    assert codes[:2] == codes[2:]
    assert codes[0] != codes[1]


def test_an_environment_that_is_not_there_is_refused_each_time(topics: Path, cache: DiagnosticsCache) -> None:
    for _ in range(2):
        with pytest.raises(UsageError, match="no environment is called 'prod'"):
            judged(topics, cache, environment="prod")


def test_what_changed_after_git_was_asked_is_not_kept(topics: Path, cache: DiagnosticsCache) -> None:
    file, text = topics / "web" / "a.yaml", topic("a")
    found = cache.list_folder(topics)
    file.write_text(topic("a", "spec: []\n"))

    tree, agrees = cache.read(found)
    file.write_text(text)

    assert (agrees, len(tree.documents)) == (False, 5)
    assert_it_does_not_show(topics, cache)


def test_files_outside_git_are_read(tmp_path: Path, cache: DiagnosticsCache) -> None:
    (tmp_path / "topics" / "web").mkdir(parents=True)
    (tmp_path / "topics" / "web" / "a.yaml").write_text(topic("a"))

    assert_it_does_not_show(tmp_path / "topics", cache)
    assert not (tmp_path / "cache").exists()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _turn_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def _of_another_program(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:10] + bytes(64) + data[74:])


def _a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _a_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [_cut, _turn_a_bit, _of_another_program, _a_pipe, _a_link, _a_folder, Path.unlink, lambda p: p.write_bytes(b"")],
)
def test_a_damaged_cache_is_as_none(topics: Path, cache: DiagnosticsCache, damage: Callable[[Path], object]) -> None:
    judged(topics, cache)
    assert cache.folder is not None
    (kept,) = cache.folder.iterdir()
    damage(kept)

    with opened_below(topics) as opened:
        judged(topics, cache)

    assert len(opened) == 5
    assert_it_does_not_show(topics, cache)


def test_a_cache_that_cannot_be_written_is_as_none(topics: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert_it_does_not_show(topics, DiagnosticsCache(tmp_path / "file" / "cache"))


def test_the_cache_is_the_users_own_and_leaves_nothing_half_written(topics: Path, cache: DiagnosticsCache) -> None:
    judged(topics, cache)

    assert cache.folder is not None
    assert cache.folder.stat().st_mode & 0o077 == 0
    assert len(list(cache.folder.iterdir())) == 1


def test_a_cache_that_grew_large_forgets_what_is_oldest(topics: Path, tmp_path: Path) -> None:
    small = DiagnosticsCache(tmp_path / "cache", most_bytes=1)

    judged(topics, small)

    assert list((tmp_path / "cache").iterdir()) == []


def test_the_cache_lies_where_the_user_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path))

    assert users_cache().folder == tmp_path / "specs"


def test_every_module_that_reads_or_judges_is_part_of_the_program() -> None:
    names = "topicops.edges.specs.reader, topicops.edges.specs.git, topicops.steps.specs.validate"
    question = f"import sys, {names}; print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('topicops.')))"
    done = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)

    loaded = {Path(name) for name in done.stdout.split()}
    folders = {path for path in loaded if path.name == "__init__.py" and path.parent.name == "edges"}
    assert loaded - folders <= set(decisive_files())
    assert any(path.suffix == ".json" for path in decisive_files())


def test_no_hostile_or_harmless_file_is_told_from_the_cache(
    tmp_path: Path, cache: DiagnosticsCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = CASES[::5]
    for number, case in enumerate(cases):
        (tmp_path / str(number)).mkdir()
        write_files(tmp_path / str(number), case["files"])
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    for number in range(len(cases)):
        monkeypatch.chdir(tmp_path / str(number))
        assert_it_does_not_show(Path("topics"), cache)


def test_no_order_of_edits_is_told_from_the_cache(topics: Path, cache: DiagnosticsCache) -> None:
    chance = random.Random(5)
    for _ in range(60):
        _edit(topics, chance)
        assert_it_does_not_show(topics, cache)


def _edit(topics: Path, chance: random.Random) -> None:
    name = chance.choice(NAMES)
    file = topics / "web" / f"{name}.yaml"
    body = chance.choice(("spec: {}\n", "spec: []\n", "spec: {partitions: 010}\n", "\tspec: {}\n", "spec: {x: 1}\n"))
    match chance.randrange(8):
        case 0:
            git(topics, "add", "-A", ".")
        case 1:
            git(topics, "commit", "-qm", "Go on", "--allow-empty")
        case 2:
            git(topics, "checkout", "-q", "-f", "HEAD", "--", ".")
        case 3 if file.exists():
            flag = chance.choice(("--assume-unchanged", "--no-assume-unchanged"))
            subprocess.run(["git", "update-index", flag, str(file)], cwd=topics, check=False, capture_output=True)
        case 4:
            file.unlink(missing_ok=True)
            file.symlink_to(topics / "environments" / "local.yaml")
        case 5:
            file.unlink(missing_ok=True)
        case _:
            file.unlink(missing_ok=True)
            file.write_text(topic(name, body))

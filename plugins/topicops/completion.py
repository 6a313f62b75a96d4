"""What a shell offers at a Tab. No command is imported: their words are in a made table, other names are file names."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path

from topicops.edges.repository import home_of, topics_of

TABLE = Path(__file__).with_name("made_completion.json")
"""By the words of each command: what its arguments are (``""``), and the value of each option (``""`` for none)."""
MOST_FILES = 300
"""Most files of topics that are read for their owners."""
_OWNER = re.compile(r"(?<![\w-])owner:[ \t]*[\"']?([^\s\"',}#]+)")


def print_answer(instruction: str) -> bool:
    """Print what ``instruction`` (``complete_bash``) asks for; False means that this shell is not known here."""
    shell = instruction.removeprefix("complete_")
    if shell not in ("bash", "zsh", "fish"):
        return False
    line = os.environ.get("COMP_WORDS" if shell == "bash" else "_TYPER_COMPLETE_ARGS", "")
    try:
        split = shlex.split(line)
    except ValueError:  # a quote is open
        split = line.split()
    last = int(os.environ["COMP_CWORD"]) if shell == "bash" else len(split) - (not line[-1:].isspace())
    begun = "".join(split[last : last + 1]).removeprefix("=")
    words = offered([word for word in split[1:last] if word != "="], begun)
    if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        sys.exit(not words)
    if shell == "zsh":
        shown = "\n".join('"{}"'.format(word.replace(":", r"\\:")) for word in words)
        words = [f"_arguments '*: :(({shown}))'" if words else "_files"]
    sys.stdout.write("".join(f"{word}\n" for word in words))
    return True


def offered(words: Sequence[str], begun: str) -> list[str]:
    """Return the words that can follow ``words`` and begin with ``begun``; none where a file may follow."""
    table: Mapping[str, Mapping[str, str]] = json.loads(TABLE.read_text(encoding="utf-8"))
    command, arguments, expected, topics = "", 0, "", topics_of(Path.cwd()) or Path("topics")
    for last, word in zip(("", *words), words, strict=False):
        if expected:
            expected, topics = "", Path(word) if last == "--topics" else topics
        elif word.startswith("-"):
            expected = table[command].get(word, "")
        elif (below := f"{command} {word}".strip()) in table:
            command = below
        else:
            arguments += 1
    if begun.startswith("-") and not expected:
        return sorted(option for option in table[command] if option.startswith(begun))
    kind = expected or "".join(table[command][""].split()[arguments:][:1])
    found = (name for part in kind.split("|") for name in (_NAMES[part](topics) if part in _NAMES else [part]))
    return sorted({name for name in found if name.startswith(begun) and name not in ("", "FILE", "TEXT")})


def _topic_files(topics: Path) -> Iterable[Path]:
    return (file for file in topics.glob("*/*.yaml") if file.parent.name not in ("environments", "profiles"))


def _owners(topics: Path) -> Iterable[str]:
    file = topics / "owners.yaml"
    files = [file] if file.is_file() else islice(_topic_files(topics), MOST_FILES)
    return (owner for each in files for owner in _OWNER.findall(each.read_text(encoding="utf-8", errors="replace")))


def _runs(_: Path) -> Iterable[str]:
    home = os.environ.get("TOPICOPS_HOME")
    if home and "://" in home:  # a store would be asked at each key
        return ()
    return (folder.name for folder in (Path(home) if home else home_of(Path.cwd())).glob("runs/*/*"))


_NAMES: Mapping[str, Callable[[Path], Iterable[str]]] = {
    # a name with a dot is a part of another file
    "ENVIRONMENT": lambda topics: (file.stem for file in topics.glob("environments/*.yaml") if "." not in file.stem),
    "PROFILE": lambda topics: (file.stem for file in topics.glob("profiles/*.yaml")),
    "TOPIC": lambda topics: (file.stem for file in _topic_files(topics)),
    "OWNER": _owners,
    "CODE": lambda _: import_module("topicops.model.codes").CODES,
    "RUN": _runs,
}

"""What people type: commands, and what they share. May import everything but ``on_airflow``'s tasks; prints, and exits.

Command modules import heavy things inside their functions, so that each command pays only for what it needs.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import typer

from topicops import __version__
from topicops.cli.output import print_error, print_result, progress
from topicops.cli.plain_values import read_plain_values
from topicops.model.codes import Code
from topicops.model.errors import ExitStatus, MissingExtraError, SpecError, TopicopsError, known_cause, sentence
from topicops.model.printable import printable
from topicops.model.waits import told_waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from topicops.model.specs.diagnostics import Diagnostic

logger = logging.getLogger(__name__)
read_plain_values()

HIDDEN = ""
ALIASES = {
    "code": "explain",
    "show": "plan",
    "topics": "list --describe",
    "dags": "init --airflow -",
    "dags --write": "init --airflow",
    "history": "audit",
    "history topic": "audit past",
}
"""Names of before 1.0, and what they are called now."""
ADVICE = {
    "delete": "`topicops retire TOPIC --reason TEXT` marks it in its file, and the next plan deletes it",
    "rename": "Kafka has no rename: `topicops new TOPIC --owner OWNER`, later `topicops retire TOPIC --reason TEXT`",
    "status": "`topicops verify` says what is healthy, `topicops drift` what differs, `topicops list` what is there",
    "--dry-run": "`topicops plan` shows what would change and sends nothing",
}
"""What to type in place of a word that other programs have."""
PANELS = {
    "Start": {
        "init": ".features.files.authoring.commands:init_command",
        "import": ".features.files.authoring.commands:import_command",
        "doctor": ".features.ask.doctor.commands:doctor_command",
        "local": "local:app",
    },
    "Write": {
        "new": ".features.files.authoring.commands:new_command",
        "retire": ".features.files.authoring.commands:retire_command",
        "adopt": ".features.files.authoring.commands:adopt_command",
        "fmt": ".features.files.formatting.commands:fmt_command",
        "validate": "commands:validate_command",
        "explain": ".features.files.explain.commands:explain_command",
    },
    "Change": {
        "plan": "commands:plan_command",
        "rehearse": ".features.rehearse.commands:rehearse_command",
        "apply": "apply:apply_command",
        "rebalance": ".features.moves.planned.commands:rebalance_command",
        "drain": ".features.moves.planned.commands:drain_command",
        "leaders": ".features.moves.planned.commands:leaders_command",
        "moves": ".features.moves.telling.commands:moves_command",
        "stop": "commands:stop_command",
        "undo": ".features.undo.commands:undo_command",
    },
    "Look": {
        "list": ".features.ask.topics.commands:list_command",
        "drift": ".features.ask.drift.commands:drift_command",
        "why": ".features.ask.why.commands:why_command",
        "verify": "commands:verify_command",
        "audit": ".features.ask.audit.commands:app",
    },
    "Automate": {
        "ci": ".features.pull_requests.commands:app",
        "spark": ".features.spark.commands:app",
    },
    HIDDEN: {
        "schema": ".features.files.schemas.commands:schema_command",
        "demo": "local:demo_command",
    },
}  # fmt: skip
"""Module of this package and name in it, of each command, by the part of the help that shows it.

The module of a feature begins with a dot: it is one of ``topicops``. Deleting a feature deletes its lines here.
"""
COMMANDS = {name: place for panel in PANELS.values() for name, place in panel.items()}
NEEDS_NO_TOPICS = (None, "init", "local", "spark", "schema", "demo", "explain")
"""Commands that also work without a folder of topics; None is a line without a command."""
JOINED: Mapping[str, str] = {
    "audit": ".features.ask.history.commands:app",
}  # fmt: skip
"""Commands of another feature that a group has too."""


def app_of(names: Iterable[str]) -> typer.Typer:
    """Return the program with those of its commands, whose modules are imported."""
    app = typer.Typer(
        name="topicops",
        help="Kafka topics as reviewed YAML: plan against the live cluster, apply what may run, prove the result.",
        no_args_is_help=True,
        add_completion=names is COMMANDS,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(options)
    panels = {name: panel for panel, those in PANELS.items() for name in those}
    for name in names:
        shown_in: Any = {"rich_help_panel": panels[name], "hidden": panels[name] == HIDDEN}
        try:
            command = _imported(COMMANDS[name])
        except MissingExtraError as error:
            any_words = {"allow_extra_args": True, "ignore_unknown_options": True}
            shown = f"{error}.".replace("[", "\\[")  # else it begins a style
            app.command(name, help=shown, context_settings=any_words, **shown_in)(_raising(error))
            continue
        if isinstance(command, typer.Typer):
            if name in JOINED and not command.registered_groups:
                command.add_typer(_imported(JOINED[name]))  # without a name: its commands become those of the group
            app.add_typer(command, name=name, **shown_in)
        else:
            app.command(name, **shown_in)(command)
    return app


def _imported(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(f".{module}", __name__), attribute)


def _raising(error: MissingExtraError) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


def options(
    version: bool = typer.Option(False, "--version", help="Print the version and end."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Log each step and each change to the cluster."),
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    for noisy in ("kazoo", "kafka", "py4j"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    if version:
        print(__version__)
        raise typer.Exit


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and give its exit status; a problem is one clear text on stderr, never a traceback."""
    words = _with_new_name(sys.argv[1:] if arguments is None else arguments)
    try:
        with told_waits(progress):
            return _command(_named(words))(words, standalone_mode=False) or ExitStatus.SUCCESS
    except SpecError as error:
        from topicops.flow.spec_files import shown_diagnostics

        return _failed(words, error.exit_status, shown_diagnostics(error.diagnostics), diagnostics=error.diagnostics)
    except TopicopsError as error:
        text = f"topicops: {f'{error.code}: ' if error.code else ''}{error}"
        return _failed(words, error.exit_status, text, code=error.code, message=str(error))
    except typer.exceptions.TyperException as error:
        message = _usage_text(error)
        return _failed(words, ExitStatus.ERROR, f"topicops: {message}", message=message)
    except (KeyboardInterrupt, typer.Abort):
        print_error("topicops: interrupted")
        return ExitStatus.INTERRUPTED
    except SystemExit as error:
        return _status_of(error)
    except Exception as error:
        logger.info("unexpected error", exc_info=True)
        message = known_cause(error) or f"{sentence(error)}; run with --verbose to see where"
        return _failed(words, ExitStatus.ERROR, f"topicops: {message}", message=message)


def _status_of(error: SystemExit) -> int:
    """Give the status as Python itself takes it: None is 0, a number is itself, a text is printed and counts as 1."""
    if error.code is None or isinstance(error.code, int):
        return error.code or ExitStatus.SUCCESS
    print_error(f"topicops: {error.code}")
    return ExitStatus.ERROR


def _failed(
    words: Sequence[str],
    status: ExitStatus,
    text: str,
    *,
    code: Code | None = None,
    message: str = "",
    diagnostics: Sequence[Diagnostic] = (),
) -> ExitStatus:
    """Print why the command ended: for people on stderr, and with ``--format json`` also as JSON on stdout."""
    from topicops.cli.shared_options import say_where_to_start

    print_error(text)
    if not ("`topicops init`" in text or _named(words) in NEEDS_NO_TOPICS):
        say_where_to_start()
    if "--format=json" in words or ("--format", "json") in pairwise(words):
        from topicops.steps.reporting.diagnostics_text import error_json

        print_result(error_json(status, code=code, message=message, diagnostics=diagnostics))
    return status


def _usage_text(error: typer.exceptions.TyperException) -> str:
    """Return the problem; for an unknown option, those that begin with the same letters, else similar ones."""
    wrong, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if wrong and context:
        if wrong in ADVICE:
            return f"No such option: {wrong}; {ADVICE[wrong]}"
        known = [option for parameter in context.command.params for option in parameter.opts]
        if longer := [option for option in known if option.startswith(wrong)]:
            return f"No such option: {printable(wrong)} (did you mean {' or '.join(longer)}?)"
    if advice := ADVICE.get(error.message.removeprefix("No such command '").removesuffix("'.")):
        return f"{error.message.removesuffix('.')}; {advice}"
    return error.format_message() or "see `topicops --help`"


def _named(words: Sequence[str]) -> str | None:
    """Return the command that a line names; None where it names none, or asks for help about all of them."""
    first = words[_first(words) :][:1]
    return first[0] if first and first[0] in COMMANDS else None


def _first(words: Sequence[str]) -> int:
    """Return the place of the command in a line; the line's end where there is none."""
    return next((place for place, word in enumerate(words) if word not in ("-v", "--verbose")), len(words))


def _with_new_name(words: list[str]) -> list[str]:
    """Return the line with the command's name of today in place of an older one."""
    first = _first(words)
    for length in (2, 1):
        if new := ALIASES.get(" ".join(words[first : first + length])):
            return [*words[:first], *new.split(), *words[first + length :]]
    return words


@cache
def _command(name: str | None) -> Callable[..., int | None]:
    """Make it of one command if that is known: reading the signatures of all takes longer than most commands."""
    return typer.main.get_command(app_of([name] if name else COMMANDS))


def __getattr__(name: str) -> typer.Typer:
    """Return ``app``, the program with all its commands."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return app_of(COMMANDS)

"""What people type: commands, and what they share. May import everything but ``on_airflow``'s tasks; prints, and exits.

Command modules import heavy things inside their functions, so that each command pays only for what it needs.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

import typer

from topicops import __version__
from topicops.cli.output import print_error, print_result, progress
from topicops.model.codes import Code
from topicops.model.errors import ExitStatus, MissingExtraError, SpecError, TopicopsError, known_cause, sentence
from topicops.model.printable import printable
from topicops.model.waits import told_waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from topicops.model.specs.diagnostics import Diagnostic

logger = logging.getLogger(__name__)

COMMANDS = {
    "init": ".features.files.authoring.commands:init_command",
    "validate": "commands:validate_command",
    "explain": ".features.files.explain.commands:explain_command",
    "code": ".features.files.explain.commands:code_command",
    "schema": ".features.files.schemas.commands:schema_command",
    "dags": ".features.files.authoring.commands:dags_command",
    "fmt": ".features.files.formatting.commands:fmt_command",
    "new": ".features.files.authoring.commands:new_command",
    "retire": ".features.files.authoring.commands:retire_command",
    "plan": "commands:plan_command",
    "show": "commands:show_command",
    "rehearse": ".features.rehearse.commands:rehearse_command",
    "apply": "apply:apply_command",
    "stop": "commands:stop_command",
    "verify": "commands:verify_command",
    "why": ".features.ask.why.commands:why_command",
    "doctor": ".features.ask.doctor.commands:doctor_command",
    "topics": ".features.ask.topics.commands:topics_command",
    "drift": ".features.ask.drift.commands:drift_command",
    "adopt": ".features.files.authoring.commands:adopt_command",
    "history": ".features.ask.history.commands:app",
    "import": ".features.files.authoring.commands:import_command",
    "demo": "local:demo_command",
    "ci": ".features.pull_requests.commands:app",
    "audit": ".features.ask.audit.commands:app",
    "undo": ".features.undo.commands:undo_command",
    "local": "local:app",
    "spark": ".features.spark.commands:app",
}
"""Module of this package and name in it, in the order in which the help shows them.

The module of a feature begins with a dot: it is one of ``topicops``. Deleting a feature deletes its lines here.
"""


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
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        try:
            command = getattr(import_module(f".{module}", __name__), attribute)
        except MissingExtraError as error:
            any_words = {"allow_extra_args": True, "ignore_unknown_options": True}
            shown = f"{error}.".replace("[", "\\[")  # else it begins a style
            app.command(name, help=shown, context_settings=any_words)(_raising(error))
            continue
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


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
    words = sys.argv[1:] if arguments is None else arguments
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
    print_error(text)
    if "--format=json" in words or ("--format", "json") in pairwise(words):
        from topicops.steps.reporting.diagnostics_text import error_json

        print_result(error_json(status, code=code, message=message, diagnostics=diagnostics))
    return status


def _usage_text(error: typer.exceptions.TyperException) -> str:
    """Return the problem; for an unknown option, those that begin with the same letters, else similar ones."""
    wrong, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if wrong and context:
        known = [option for parameter in context.command.params for option in parameter.opts]
        if longer := [option for option in known if option.startswith(wrong)]:
            return f"No such option: {printable(wrong)} (did you mean {' or '.join(longer)}?)"
    return error.format_message() or "see `topicops --help`"


def _named(words: Sequence[str]) -> str | None:
    """Return the command that a line names; None where it names none, or asks for help about all of them."""
    first = next((word for word in words if word not in ("-v", "--verbose")), "")
    return first if first in COMMANDS else None


@cache
def _command(name: str | None) -> Callable[..., int | None]:
    """Make it of one command if that is known: reading the signatures of all takes longer than most commands."""
    return typer.main.get_command(app_of([name] if name else COMMANDS))


def __getattr__(name: str) -> typer.Typer:
    """Return ``app``, the program with all its commands."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return app_of(COMMANDS)

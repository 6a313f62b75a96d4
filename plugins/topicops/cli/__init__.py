"""What people type: one module a command. May import everything but ``on_airflow``'s tasks; prints, and exits.

Command modules import heavy things inside their functions, so that each command pays only for what it needs.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import cache

import typer

from topicops import __version__
from topicops.cli import (
    apply,
    audit,
    code,
    demo,
    doctor,
    drift,
    explain,
    fmt,
    importing,
    local,
    new,
    plan,
    retire,
    schema,
    show,
    topics,
    validate,
    verify,
)
from topicops.cli.output import complain
from topicops.model.errors import SpecError, TopicopsError

logger = logging.getLogger(__name__)

INTERRUPTED = 130

app = typer.Typer(
    name="topicops",
    help="Kafka topics as reviewed YAML: plan against the live cluster, apply what may run, prove the result.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("validate")(validate.validate_command)
app.command("explain")(explain.explain_command)
app.command("code")(code.code_command)
app.command("schema")(schema.schema_command)
app.command("fmt")(fmt.fmt_command)
app.command("new")(new.new_command)
app.command("retire")(retire.retire_command)
app.command("plan")(plan.plan_command)
app.command("show")(show.show_command)
app.command("apply")(apply.apply_command)
app.command("verify")(verify.verify_command)
app.command("doctor")(doctor.doctor_command)
app.command("topics")(topics.topics_command)
app.command("drift")(drift.drift_command)
app.command("import")(importing.import_command)
app.command("demo")(demo.demo_command)
app.add_typer(audit.app, name="audit")
app.add_typer(local.app, name="local")


@app.callback(invoke_without_command=True)
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
    try:
        return _command()(arguments, standalone_mode=False) or 0
    except SpecError as error:
        complain(validate.render_text(error.diagnostics))
        return error.exit_code
    except TopicopsError as error:
        complain(f"topicops: {f'{error.code}: ' if error.code else ''}{error}")
        return error.exit_code
    except typer.exceptions.TyperException as error:
        complain(f"topicops: {error.format_message()}" if error.format_message() else "see `topicops --help`")
        return 1
    except (KeyboardInterrupt, typer.Abort):
        complain("topicops: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        logger.info("unexpected error", exc_info=True)
        complain(f"topicops: internal error: {type(error).__name__}: {error}; run with --verbose to see where")
        return 1


@cache
def _command() -> Callable[..., int | None]:
    """Made once: reading the signatures of all commands takes longer than to run most of them."""
    return typer.main.get_command(app)


def main() -> None:
    sys.exit(run())

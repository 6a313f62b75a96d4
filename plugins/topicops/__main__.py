"""The start of the program: Ctrl-C while the commands are still being imported is no traceback."""

from __future__ import annotations

import gc
import os
import sys

from topicops import __version__

INTERRUPTED = 130
"""Value of ``ExitStatus.INTERRUPTED``, which would need an import."""


def main() -> None:
    gc.set_threshold(200_000)  # what is imported stays: to look through it often takes longer than most commands
    try:
        if asked := os.environ.get("_TOPICOPS_COMPLETE"):
            from topicops.completion import print_answer

            if print_answer(asked):
                return
        from topicops.standard_streams import make_unfailing, taken_loss

        make_unfailing()
        status = _run()
        if reason := taken_loss(sys.stdout):
            from topicops.cli.output import print_loss

            print_loss(reason)
        sys.exit(status)
    except KeyboardInterrupt:
        if output := sys.modules.get("topicops.cli.output"):
            output.end_progress()
        sys.stderr.write("topicops: interrupted\n")
        sys.exit(INTERRUPTED)


def _run() -> int:
    if sys.argv[1:] == ["--version"]:  # scripts ask it often, and no command is needed
        sys.stdout.write(f"{__version__}\n")
        return 0
    from topicops.cli import run

    return run()


if __name__ == "__main__":
    main()

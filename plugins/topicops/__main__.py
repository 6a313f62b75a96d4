"""The start of the program: Ctrl-C while the commands are still being imported is no traceback."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
"""Value of ``ExitStatus.INTERRUPTED``, which would need an import."""


def main() -> None:
    try:
        if asked := os.environ.get("_TOPICOPS_COMPLETE"):
            from topicops.completion import print_answer

            if print_answer(asked):
                return
        from topicops.cli.standard_streams import make_unfailing

        make_unfailing()
        from topicops.cli import run
        from topicops.cli.output import print_loss

        status = run()
        print_loss()
        sys.exit(status)
    except KeyboardInterrupt:
        if output := sys.modules.get("topicops.cli.output"):
            output.end_progress()
        sys.stderr.write("topicops: interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()

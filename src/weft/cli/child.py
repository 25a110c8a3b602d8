"""The entry point of a child process of ``weft serve`` or ``weft worker`` with several processes."""

from __future__ import annotations

import sys

import msgspec

from weft.cli.entry import INTERRUPTED, REFUSED
from weft.cli.messages import print_error
from weft.cli.processes import ChildCommand, ChildReport, ParentProcess
from weft.cli.serve import run_child
from weft.errors import UsageError, WeftError


def main(text: str) -> int:
    """Run the command until SIGTERM arrives or the parent has ended. Returns the exit code."""
    command = msgspec.json.decode(text, type=ChildCommand)
    sys.path[:] = command.path
    parent = ParentProcess(command.parent_fd)
    try:
        run_child(command, parent)
    except WeftError as error:
        if parent.has_reported:
            print_error(error)
        else:
            misused = isinstance(error, UsageError)
            parent.report(ChildReport(code=error.code, message=error.message, hint=error.hint, misused=misused))
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""The entry point of one of several processes of ``weft serve`` or ``weft worker``; their parent starts it."""

from __future__ import annotations

import sys

import msgspec

from weft.cli.entry import INTERRUPTED, REFUSED
from weft.cli.messages import print_error
from weft.cli.processes import ChildCommand, ChildReport, ParentProcess
from weft.cli.serve import run_child
from weft.errors import UsageError, WeftError


def main(text: str) -> int:
    """Run the command until SIGTERM comes or the parent is gone. Returns the exit code."""
    command = msgspec.json.decode(text, type=ChildCommand)
    sys.path[:] = command.path
    parent = ParentProcess(command.parent_fd)
    try:
        run_child(command, parent)
    except WeftError as error:
        if parent.told:
            print_error(error)
        else:
            misused = isinstance(error, UsageError)
            parent.tell(ChildReport(code=error.code, message=error.message, hint=error.hint, misused=misused))
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

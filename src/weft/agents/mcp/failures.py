"""The failures of tools of MCP servers, grouped by what happens next.

tool.failed        the server answered, and a retry would get the same answer: final
tool.unavailable   no answer. Retried, unless the tool is irreversible and the server may have acted on the call
tool.changed       the tool is not what was accepted, or is new: final, until somebody accepts it
"""

from __future__ import annotations

from weft.errors import Refused, WeftError


class ToolFailed(WeftError):
    """A tool of an MCP server failed, or its answer cannot be used.

    ``is_unreadable``: the server answered, and its answer is not MCP or nested too deeply. It may have done what it was
    asked.
    """

    code = "tool.failed"

    def __init__(
        self, message: str, *, is_unreadable: bool = False, hint: str = "", code: str | None = None, **context: object
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.is_unreadable = is_unreadable


class ToolUnavailable(WeftError):
    """An MCP server gave no answer. ``in_doubt``: it may have acted on the call."""

    code = "tool.unavailable"

    def __init__(
        self, message: str, *, in_doubt: bool = False, hint: str = "", code: str | None = None, **context: object
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.in_doubt = in_doubt


def tool_changed(server: str, tools: list[str]) -> Refused:
    """Make the error for tools whose definitions nobody has accepted."""
    names = ", ".join(tools[:5]) + (" …" if len(tools) > 5 else "")
    return Refused(
        f"The MCP server {server} has changed {names}, or it is new, and nobody has accepted that.",
        hint=f"Look at it, and accept it: weft tools accept {server}",
        code="tool.changed",
    )

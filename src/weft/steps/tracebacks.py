"""Format the traceback of a failure as Python would, shortened for the user.

Frames in Weft are omitted. If the text is too long, frames in libraries are omitted, and then the middle of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException
from types import TracebackType

from weft.errors import RecordedTraceback, WeftError
from weft.steps.frames import is_outside, is_users
from weft.steps.secrets import replace_secrets

BYTES_MAX = 16 * 1024
_HEAD = 5 * 1024
_RECORDED = f"{RecordedTraceback.__module__}.{RecordedTraceback.__qualname__}: "
"""Python prints this line before a recorded traceback."""

_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
"""Replacements for control characters, which could control a terminal. Also, no store accepts NUL."""


def traceback_of(error: BaseException) -> str:
    """Format an exception with its causes. Never raises, even if the exception is malformed.

    An error that Weft itself raised, such as the failure of a script or of a request, has no traceback: its lines are
    not the user's.
    """
    try:
        found = TracebackException.from_exception(error, compact=True)
        if isinstance(error, WeftError) and not (isinstance(error.__cause__, RecordedTraceback) or _is_users(found)):
            return ""
        return _formatted(found)
    except BaseException as broken:  # noqa: BLE001  # some exceptions cannot be formatted
        return f"<the traceback of {type(error).__name__} cannot be formatted: {type(broken).__name__}>"


def loggable_error(error: BaseException) -> BaseException:
    """Return the exception if a log can format it, and otherwise a RuntimeError that names it."""
    try:
        "".join(TracebackException.from_exception(error).format())
    except BaseException as broken:  # noqa: BLE001
        return RuntimeError(f"{type(error).__name__}, which cannot be formatted: {type(broken).__name__}")
    return error


def user_line_of(traceback: TracebackType | None) -> str:
    """Return the innermost line of the user's code as ``file.py:12``, or else the innermost line outside Weft."""
    frames: list[tuple[str, int]] = []
    while traceback is not None:
        frames.append((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    for belongs in (is_users, is_outside):
        for path, line in reversed(frames):
            if belongs(path):
                return f"{Path(path).name}:{line}"
    return ""


def _is_users(found: TracebackException) -> bool:
    """Return whether an exception or one of its causes passed through the user's code."""
    return any(is_users(frame.filename) for part in _linked_exceptions(found) for frame in part.stack)


def _formatted(found: TracebackException) -> str:
    parts = list(_linked_exceptions(found))
    for part in parts:
        _keep(part, _from_users(part.stack))
    text = _traceback_text(found)
    if len(text.encode("utf-8", "replace")) > BYTES_MAX:
        for part in parts:
            _keep(part, [frame for frame in part.stack or () if is_users(frame.filename)])
        text = _traceback_text(found)
    return _shortened(text)


def _from_users(stack: StackSummary) -> list[FrameSummary]:
    """Return the frames outside Weft, starting with the first frame in the user's code."""
    outside = [frame for frame in stack if is_outside(frame.filename)]
    first = next((index for index, frame in enumerate(outside) if is_users(frame.filename)), 0)
    return outside[first:]


def _keep(part: TracebackException, frames: list[FrameSummary]) -> None:
    """Keep only these frames. If there are none, keep all frames, unless the exception has a cause."""
    if frames:
        part.stack = StackSummary.from_list(frames)
    elif part.__cause__ is not None:
        part.stack = None  # type: ignore[assignment]  # shown without frames and without a heading


def _linked_exceptions(found: TracebackException) -> Iterator[TracebackException]:
    """Yield an exception, its causes and, if it is a group, its members."""
    todo, seen = [found], set[int]()
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        todo += [other for other in (part.__cause__, part.__context__, *(part.exceptions or ())) if other is not None]


def _traceback_text(found: TracebackException) -> str:
    lines = "".join(found.format()).rstrip().split("\n")
    return replace_secrets("\n".join(line for line in lines if not line.endswith(_RECORDED)))


def _shortened(text: str) -> str:
    """Return a text that is printable and not too long. Only what is kept of it is made printable, which is slow."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= BYTES_MAX:
        raw = _printable(raw)
    if len(raw) <= BYTES_MAX:
        return raw.decode()
    note = f"\n… {len(raw) - BYTES_MAX:,} bytes omitted …\n"
    tail = BYTES_MAX - _HEAD - len(note.encode())
    head, end = _printable(raw[:_HEAD])[:_HEAD], _printable(raw[-tail:])[-tail:]
    return f"{head.decode(errors='ignore')}{note}{end.decode(errors='ignore')}"


def _printable(raw: bytes) -> bytes:
    return raw.decode(errors="ignore").translate(_VISIBLE).encode()

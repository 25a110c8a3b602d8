"""Conditions in Python, ``def evaluate(output, context)``, run in another process. Rejected unless enabled.

The code runs in the interpreter of pydantic-monty, in a worker process without files, network and modules (except a few
pure ones), with limits on time and memory. A worker that dies is replaced. Evaluations share no state. A call blocks
its thread, so a decision must not make it.
"""

from __future__ import annotations

import ast
import atexit
import os
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.conditions.budget import EvaluationFault
from weft.conditions.failures import BadExpression, ExpressionError, combine_errors, shorten
from weft.conditions.paths import Path
from weft.extras import require

CODE_CHARS_MAX: Final = 65_536
TIME_MS_MAX: Final = 1_000
MEMORY_MB_MAX: Final = 50
PRINTED_CHARS_MAX: Final = 8_000
"""How much of what a script prints is kept."""
_GRACE_S: Final = 2.0
_FIRST_LINE_MAX: Final = 200

_lock = threading.Lock()


class _Sandbox:
    enabled = False
    pool: Any = None
    pid = 0


class SandboxLimits(NamedTuple):
    """The limits of one evaluation."""

    time_ms: int = TIME_MS_MAX
    memory_mb: int = MEMORY_MB_MAX


class Code(NamedTuple):
    """Checked source code, and the paths that it reads."""

    text: str
    paths: frozenset[Path]


def enable_python_sandbox() -> None:
    """Allow conditions in Python from now on, in this process.

    Raises:
        MissingExtra: the sandbox is not installed.
    """
    require("sandbox", "A condition in Python")
    _Sandbox.enabled = True


def is_enabled() -> bool:
    """Return whether the sandbox is enabled."""
    return _Sandbox.enabled


def check_python_source(text: str) -> Code:
    """Check that the code is Python and defines ``evaluate(output, context)``.

    Raises:
        BadExpression: the code is not Python, is too long, or does not define the function.
    """
    if len(text) > CODE_CHARS_MAX:
        raise _bad("too_long", f"the code has {len(text):,} characters; the limit is {CODE_CHARS_MAX:,}.")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        lines = text.splitlines(keepends=True)
        position = sum(map(len, lines[: (error.lineno or 1) - 1])) + (error.offset or 1) - 1
        raise _bad("python", f"{error.msg}.", text, min(position, len(text))) from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise _bad("python", f"the code cannot be parsed ({error}).") from None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "evaluate":
            names = [arg.arg for arg in node.args.args]
            if len(names) == 2:
                return Code(text, frozenset({("output",), *_nodes_read(node, names[1])}))
    raise _bad(
        "python",
        "the code does not define `evaluate(output, context)`.",
        hint="Write `def evaluate(output, context):`.",
    )


def _nodes_read(function: ast.FunctionDef, context: str) -> set[Path]:
    """Return the paths of the nodes that ``context["name"]`` and ``context.get("name", …)`` read.

    Any other use of ``context`` may read all nodes.
    """
    named: set[Path] = set()
    uses = sum(isinstance(node, ast.Name) and node.id == context for node in ast.walk(function))
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if name == context:
                pass
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get"), args=[ast.Constant(value=str(key)), *_]
            ) if name == context:
                pass
            case _:
                continue
        named.add(("nodes", key))
        uses -= 1
    return {("nodes",)} if uses else named


def run_code(code: str, output: Any, context: Any, limits: SandboxLimits) -> Any:
    """Run ``evaluate(output, context)`` and return its result.

    Raises:
        EvaluationFault: the code raised, exceeded its limits, or did something that is not allowed.
    """
    called = f"{code}\n\nevaluate(output, context)\n"
    return _run("condition.py", called, {"output": output, "context": context}, limits, _discard)


def run_script(code: str, inputs: dict[str, Any], limits: SandboxLimits) -> tuple[Any, str]:
    """Run a script, and return the value of its last expression and the beginning of what it printed.

    Raises:
        EvaluationFault: the code raised, exceeded its limits, or did something that is not allowed.
    """
    printed: list[str] = []
    room = PRINTED_CHARS_MAX

    def keep(_stream: str, text: str) -> None:
        # What is printed arrives in this process, where the limits of the sandbox do not count.
        nonlocal room
        if room > 0:
            printed.append(text[:room])
            room -= len(text)

    value = _run("script.py", code, inputs, limits, keep)
    return value, "".join(printed)


def _run(name: str, code: str, inputs: dict[str, Any], limits: SandboxLimits, on_print: Callable[..., None]) -> Any:
    """Run code in a worker, and return the value of its last expression. Raises EvaluationFault."""
    import pydantic_monty as monty  # noqa: PLC0415  # an extra

    bounds: Any = {
        "max_feed_duration_secs": limits.time_ms / 1000,
        "max_memory": limits.memory_mb * 1024 * 1024,
        "max_recursion_depth": 200,
        "max_suspensions": 16,
        "max_total_sleep_secs": 0.0,
    }
    try:
        with _pool().checkout(limits=bounds, script_name=name, os_policy={"sleep": "zero"}) as session:
            return session.feed_run(code, inputs=inputs, print_callback=on_print)
    except TimeoutError:
        raise EvaluationFault("no sandbox process became free in time") from None
    except monty.MontyError as error:
        raise _fault(error, limits) from None


def _fault(error: Exception, limits: SandboxLimits) -> EvaluationFault:
    lines = str(error).splitlines() or [type(error).__name__]
    message = shorten(lines[-1] if lines[0].startswith("Traceback") else lines[0], _FIRST_LINE_MAX)
    if message.startswith("TimeoutError") or getattr(error, "timed_out", False):
        return EvaluationFault(f"the code took longer than {limits.time_ms} ms")
    if message.startswith("MemoryError"):
        return EvaluationFault(f"the code needed more than {limits.memory_mb} MB")
    return EvaluationFault(f"the code failed: {message.rstrip('.')}")


def _discard(_stream: str, _text: str) -> None:
    """Ignore what a condition prints."""


def _pool() -> Any:
    """Return the workers of this process.

    Raises:
        EvaluationFault: this process was forked after the workers were started, so they would never reply.
    """
    if _Sandbox.pid not in (0, os.getpid()):
        raise EvaluationFault("the sandbox does not work in a forked process", hint="Start processes with spawn.")
    with _lock:
        if _Sandbox.pool is None:
            import pydantic_monty as monty  # noqa: PLC0415  # an extra

            pool = monty.Monty(
                min_processes=1,
                checkout_timeout=30.0,
                request_timeout=TIME_MS_MAX / 1000 + _GRACE_S,
                max_checkouts_per_worker=1_000,
            )
            _Sandbox.pool, _Sandbox.pid = pool.__enter__(), os.getpid()
            atexit.register(_close)
        return _Sandbox.pool


def _close() -> None:
    if _Sandbox.pid == os.getpid():
        _Sandbox.pool.__exit__(None, None, None)


def _bad(code: str, message: str, text: str = "", position: int | None = None, hint: str = "") -> BadExpression:
    return combine_errors([ExpressionError(f"expression.{code}", message, position, text, hint=hint)])

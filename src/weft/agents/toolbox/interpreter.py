"""Run Python that a model wrote, in the sandbox: no files, no network, no imports, limited time and memory."""

from __future__ import annotations

from typing import Any, Final

from weft.conditions.budget import EvaluationFault
from weft.conditions.sandbox import SandboxLimits, run_script
from weft.core.values import encode
from weft.errors import BadValue
from weft.extras import require

CODE_CHARS_MAX: Final = 20_000
LIMITS: Final = SandboxLimits(time_ms=5_000, memory_mb=128)


def interpret_code(code: str, data: Any) -> dict[str, Any]:
    """Run code that sees ``data``, and return the value of its last expression and what it printed.

    Raises:
        BadValue: the code failed, is too long, or its value is not JSON.
        MissingExtra: the sandbox is not installed.
    """
    require("sandbox", "code_interpreter")
    if len(code) > CODE_CHARS_MAX:
        raise BadValue(f"The code has {len(code):,} characters; the limit is {CODE_CHARS_MAX:,}.")
    try:
        value, printed = run_script(code, {"data": data}, LIMITS)
    except EvaluationFault as fault:
        raise BadValue(f"{str(fault)[:1].upper()}{str(fault)[1:]}.", hint="Correct the code.") from None
    encode(value, what="The code gives")
    return {"value": value, "printed": printed}

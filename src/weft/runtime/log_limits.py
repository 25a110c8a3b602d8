"""How much is kept of what steps print: ``[tool.weft.logs]`` in ``pyproject.toml``, and ``WEFT_LOGS``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.errors import UsageError
from weft.ports.step_logs import LogLimits
from weft.settings import PROJECT_FILE, project_keys, project_table, variable

_HINT = "Write for example: [tool.weft.logs] keep = true, lines = 10000, size_bytes = 1048576."
SWITCHES = {"on": True, "off": False}


def project_log_limits(path: Path = PROJECT_FILE) -> LogLimits | None:
    """Read the limits of the project in the current folder; None if nothing is kept. Raises UsageError.

    ``WEFT_LOGS`` is ``on`` or ``off`` and comes before ``keep`` in the file.
    """
    switch = variable("WEFT_LOGS")
    if switch and switch not in SWITCHES:
        raise UsageError(f"WEFT_LOGS={switch!r} is not one of on, off.", hint="Write WEFT_LOGS=off, or unset it.")
    keep, limits = read_log_limits(project_table(path).get("logs", {}))
    return limits if (SWITCHES[switch] if switch else keep) else None


def read_log_limits(section: Any) -> tuple[bool, LogLimits]:
    """Read whether lines are kept, and how many, from a table of TOML. Raises UsageError with everything wrong."""
    if not isinstance(section, Mapping):
        raise UsageError("[tool.weft.logs] is not a table.", hint=_HINT)
    known, numbers = project_keys("logs"), LogLimits.__struct_fields__
    wrong = [f"{name} is not known; it has {', '.join(known)}" for name in section if name not in known]
    wrong += [
        f"{name} = {value!r} is not a number from 1 on"
        for name, value in section.items()
        if name in numbers and (not isinstance(value, int) or isinstance(value, bool) or value < 1)
    ]
    keep = section.get("keep", True)
    if not isinstance(keep, bool):
        wrong.append(f"keep = {keep!r} is not true or false")
    if wrong:
        raise UsageError(f"[tool.weft.logs] cannot be read: {'; '.join(wrong)}.", hint=_HINT)
    return keep, LogLimits(**{name: value for name, value in section.items() if name in numbers})

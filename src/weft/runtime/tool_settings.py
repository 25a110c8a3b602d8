"""When pipelines of agents become tools: ``[tool.weft.agents]`` in ``pyproject.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from weft.errors import UsageError
from weft.ports.clock import Clock
from weft.ports.definitions import Definitions
from weft.ports.store import RunLog
from weft.settings import PROJECT_FILE, project_keys, project_table

SECTION = "agents"


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """In how many runs of a tenant a pipeline must succeed, and whether the tool is then offered or only proposed."""

    promote: int = 2
    """0 means never."""
    promotion: Literal["offer", "ask"] = "offer"


class ToolStores(NamedTuple):
    """What the tools of a host use of its store, and the settings about them."""

    log: RunLog
    definitions: Definitions
    clock: Clock
    settings: ToolSettings


def read_tool_settings(table: Any) -> ToolSettings:
    """Read ``[tool.weft.agents]``. Raises UsageError."""
    if not isinstance(table, dict):
        raise UsageError("[tool.weft.agents] in pyproject.toml is not a table.", hint="[tool.weft.agents] promote = 2")
    known = project_keys(SECTION)
    for key in table:
        if key not in known:
            raise UsageError(f"[tool.weft.agents] has no setting {key!r}.", hint=f"It has {', '.join(known)}.")
    promote, promotion = table.get("promote", 2), table.get("promotion", "offer")
    if type(promote) is not int or promote < 0:
        raise UsageError(f"[tool.weft.agents] promote = {promote!r} is not a number of runs.", hint="0 means never.")
    if promotion not in ("offer", "ask"):
        raise UsageError(f"[tool.weft.agents] promotion = {promotion!r} is not offer or ask.")
    return ToolSettings(promote=promote, promotion=promotion)


def project_tool_settings(path: Path = PROJECT_FILE) -> ToolSettings:
    """Return the settings of the project in the current folder. Raises UsageError."""
    return read_tool_settings(project_table(path).get(SECTION, {}))

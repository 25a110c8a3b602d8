"""The limits of patches: ``[tool.weft.limits]`` in ``pyproject.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import LimitExceeded, UsageError
from weft.settings import PROJECT_FILE, project_keys, project_table

_HINT = "Write for example: [tool.weft.limits] patches = 200, patch_operations = 1000."


class PatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many patches a run can have, and how much one patch can change."""

    patches: int = 100
    """Patches of one run."""
    patch_operations: int = 500
    patch_bytes: int = 1024 * 1024
    """The size of the new document as JSON."""
    patch_agents: int = 5
    """Agent nodes that one patch adds."""

    def check_operations(self, count: int) -> None:
        """Raise LimitExceeded if a patch has too many operations."""
        if count > self.patch_operations:
            raise _limit_exceeded(f"A patch has at most {self.patch_operations} operations; this one has {count}.")

    def check_size(self, size: int) -> None:
        """Raise LimitExceeded if the new document is too large."""
        if size > self.patch_bytes:
            raise _limit_exceeded(f"The new document has {size:,} bytes; the limit is {self.patch_bytes:,}.")

    def check_agents(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Raise LimitExceeded if too many agent nodes are added. Both are documents."""
        added = agents_in(after) - agents_in(before)
        if len(added) > self.patch_agents:
            raise _limit_exceeded(f"A patch adds at most {self.patch_agents} agent nodes; this one adds {len(added)}.")


DEFAULT_LIMITS = PatchLimits()


def project_patch_limits(path: Path = PROJECT_FILE) -> PatchLimits:
    """Read the limits of the project in the current folder. Raises UsageError with everything that is wrong."""
    return read_patch_limits(project_table(path).get("limits", {}))


def read_patch_limits(section: Any) -> PatchLimits:
    """Read limits from a table of TOML. Raises UsageError with everything that is wrong."""
    if not isinstance(section, Mapping):
        raise UsageError("[tool.weft.limits] is not a table.", hint=_HINT)
    known = project_keys("limits")
    wrong = [f"{name} is not known; it has {', '.join(known)}" for name in section if name not in known]
    wrong += [
        f"{name} = {value!r} is not a number from 1 on"
        for name, value in section.items()
        if name in known and (not isinstance(value, int) or isinstance(value, bool) or value < 1)
    ]
    if wrong:
        raise UsageError(f"[tool.weft.limits] cannot be read: {'; '.join(wrong)}.", hint=_HINT)
    return PatchLimits(**section)


def agents_in(document: Mapping[str, Any]) -> set[str]:
    """Return the names of the agent nodes of a document, in any spelling."""
    nodes = document.get("nodes")
    if isinstance(nodes, Mapping):
        named = list(nodes.items())
    elif isinstance(nodes, list):
        named = [(_patched_name(node, n), node) for n, node in enumerate(nodes)]
    else:
        named = []
    return {
        str(name)
        for name, node in named
        if isinstance(node, Mapping) and ("agent" in node or "agent_config" in node or node.get("type") == "agent")
    }


def _patched_name(node: Any, n: int) -> str:
    known = node if isinstance(node, Mapping) else {}
    return str(next((known[key] for key in ("id", "node_id", "ref") if key in known), n))


def _limit_exceeded(message: str) -> LimitExceeded:
    return LimitExceeded(message, hint="The limits are in [tool.weft.limits] of pyproject.toml.", code="limit.patches")

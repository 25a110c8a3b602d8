"""What the engine adds to secrets: no workflow sees one, and no report of a step carries one into a log."""

from __future__ import annotations

from weft.runtime.run.scopes import CURRENT
from weft.steps.secrets import forbid_where, strike_json

__all__ = ["strike_json"]


def _in_workflow() -> bool:
    return CURRENT.get(None) is not None


forbid_where(_in_workflow)

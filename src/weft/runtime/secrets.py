"""Keep secrets out of workflows and out of the reports of steps."""

from __future__ import annotations

from weft.runtime.run.scopes import CURRENT
from weft.steps.secrets import REVEALED, forbid_where, strike_json

__all__ = ["REVEALED", "strike_json"]


def _in_workflow() -> bool:
    return CURRENT.get(None) is not None


forbid_where(_in_workflow)

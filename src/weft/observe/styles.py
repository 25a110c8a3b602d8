"""The views of each style. Only this module of the read side knows which styles there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.observe.code_views import CodeViews
from weft.observe.goal_views import GoalViews
from weft.observe.graph_views import GraphViews
from weft.observe.style_views import StyleViews

CODE = CodeViews()
STYLES: Mapping[str, StyleViews[Any]] = {"": CODE, "code": CODE, "graph": GraphViews(), "goal": GoalViews()}
"""A run that was started by name has no style until a host has begun it."""


def views_of(style: str) -> StyleViews[Any]:
    """Return the views of a style; of one that this version does not know, those of code."""
    return STYLES.get(style, CODE)

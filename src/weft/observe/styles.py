"""The views of each style. No other module of ``observe`` lists the styles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.observe.code_views import CodeViews
from weft.observe.goal_views import GoalViews
from weft.observe.graph_views import GraphViews
from weft.observe.schedule_views import ScheduleViews
from weft.observe.style_views import StyleViews

CODE = CodeViews()
STYLES: Mapping[str, StyleViews[Any]] = {
    "": CODE,
    "code": CODE,
    "graph": GraphViews(),
    "goal": GoalViews(),
    "schedule": ScheduleViews(),
}
"""The views by style. The style of a run that was started by name is empty until a host begins the run."""


def views_of(style: str) -> StyleViews[Any]:
    """Return the views of a style. For an unknown style, these are the views of code."""
    return STYLES.get(style, CODE)

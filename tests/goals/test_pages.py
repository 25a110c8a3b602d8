"""Whatever a step, a document of steps or a plan is refused with has a page."""

import re
from pathlib import Path

import pytest

from weft.errors import UnknownStep
from weft.observe.error_pages import page
from weft.observe.goal_error_pages import GOAL_PAGES

SOURCE = Path(__file__).parents[2] / "src" / "weft"
NAMED = re.compile(
    r'(?:\b_?(?:add|UnreadableText)\(\s*|\b(?:code|repeated)(?:: str)? ?= ?)"([a-z_]+)"|\{kind\.area\}\.([a-z_]+)"'
)
WHOLE = re.compile(r'"(goal\.[a-z_]+)"')
READERS = (*sorted((SOURCE / "goals").glob("*.py")), SOURCE / "core" / "goal" / "checks.py")
SHARED = sorted((SOURCE / "documents").glob("*.py"))
PLANS = sorted((SOURCE / "core" / "goal").glob("*.py"))


def codes() -> set[str]:
    """Every code of a finding or refusal, as the sources spell it."""
    found = {
        f"goal.{code or shared}" for path in (*READERS, *SHARED) for code, shared in NAMED.findall(path.read_text())
    }
    return found | {code for path in (*READERS, *PLANS) for code in WHOLE.findall(path.read_text())}


def test_the_sources_are_searched_where_codes_are() -> None:
    assert {"goal.bad_need", "goal.wrong_type", "goal.duplicate_key", "goal.cycle", "goal.no_goal"} <= codes()


@pytest.mark.parametrize("code", sorted({*codes(), UnknownStep.code}))
def test_a_code_has_a_page(code: str) -> None:
    assert page(code) is not None


def test_no_page_is_for_a_code_that_nothing_says() -> None:
    assert set(GOAL_PAGES) <= codes() | {"goal.bad_step", "goal.not_freezable"}

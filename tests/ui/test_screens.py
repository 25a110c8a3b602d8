"""On every screen: no rule of accessibility is broken, Tab reaches everything, requests are few, nothing is cut off."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.ui.axe import violations_in_every_look
from tests.ui.screens import SCREENS, Screen, fill
from tests.ui.served import Served
from tests.ui.watched import Watch

pytestmark = pytest.mark.proof

STOPS_MAX = 300
NARROW = {"width": 320, "height": 640}
ZOOMED = {"width": 640, "height": 400}
"""What is left of 1,280 by 800 pixels at 200 %."""
NOTE_FOCUS = """() => {
  const at = document.activeElement;
  window.reached ??= new Set();
  if (at && at !== document.body) window.reached.add(at);
  return at !== null && at !== document.body;
}"""
CONTROLS = """
  const controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
    .filter((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => one.type !== "radio" || one.checked);
"""
"""Arrow keys lead from one radio button to the others."""
NOT_REACHED = f"""() => {{ {CONTROLS}
  return controls.filter((one) => !window.reached.has(one)).map((one) => one.outerHTML.slice(0, 200));
}}"""
WIDE = ".skip, .react-flow, .tl-scroll, .versions-diff, pre, code, .outline"
"""What may be scrolled sideways: pictures, timelines and texts. The link that skips comes into sight with the focus."""
OUT_OF_SIGHT = f"""() => {{ {CONTROLS}
  return controls.filter((one) => !one.closest("{WIDE}")).filter((one) => {{
    one.scrollIntoView({{ block: "center", inline: "nearest" }});
    const {{ left, right, top, bottom }} = one.getBoundingClientRect();
    const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    const label = one.labels?.[0];
    const isThere = one.contains(there) || there?.contains(one) || label?.contains(there)
      || there?.closest(".run-inspector");
    return left < -1 || right > innerWidth + 1 || !isThere;
  }}).map((one) => one.outerHTML.slice(0, 200));
}}"""
"""A control below the inspector, which is a drawer here, comes into sight when that is closed."""
SCROLLED_SIDEWAYS = f"""() => [document.documentElement, ...document.querySelectorAll("body *")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && !one.closest("{WIDE}"))
  .filter((one) => one === document.documentElement || /auto|scroll/.test(getComputedStyle(one).overflowX))
  .map((one) => `${{one.className || one.tagName}}: ${{one.scrollWidth}} in ${{one.clientWidth}}`)"""


@pytest.fixture(scope="module")
def versions(shop: Served) -> tuple[str, str]:
    return fill(shop)


@pytest.fixture(params=SCREENS, ids=[screen.name.replace(" ", "-") for screen in SCREENS])
def screen(request: pytest.FixtureRequest, versions: tuple[str, str], watch: Watch) -> Screen:
    found: Screen = request.param
    if found.refused:
        watch.expect(found.refused)
    return found._replace(path=found.path.format(*versions))


def test_no_rule_of_accessibility_is_broken_in_any_look(page: Page, screen: Screen) -> None:
    screen.open(page)

    assert violations_in_every_look(page) == []


def test_a_walk_by_tab_reaches_everything_and_gets_out(page: Page, screen: Screen) -> None:
    screen.open(page)
    page.wait_for_load_state("networkidle")

    for stop in range(STOPS_MAX):
        page.keyboard.press("Tab")
        if not page.evaluate(NOTE_FOCUS) and stop > 0:
            break
    else:
        pytest.fail("the walk does not get out of the page")

    assert page.evaluate(NOT_REACHED) == []


def test_few_requests_are_sent_before_the_one_that_makes_the_screen_useful(
    page: Page, screen: Screen, watch: Watch
) -> None:
    if not screen.brought_by:
        pytest.skip("it is useful before this is asked for")

    before = screen.asked_until_useful(page, watch)

    assert len(before) <= screen.requests, before


@pytest.mark.parametrize("size", [NARROW, ZOOMED], ids=["320-pixels", "200-percent"])
def test_a_small_window_hides_no_control_and_scrolls_only_down(
    page: Page, screen: Screen, size: dict[str, int]
) -> None:
    page.set_viewport_size(size)  # type: ignore[arg-type]
    page.goto(screen.path)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    page.wait_for_load_state("networkidle")

    assert page.evaluate(SCROLLED_SIDEWAYS) == []
    assert page.evaluate(OUT_OF_SIGHT) == []

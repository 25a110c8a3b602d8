"""Accessibility rules on a page as it stands."""

from __future__ import annotations

from typing import Any, Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOKS: Final[list[dict[str, Any]]] = [
    {"color_scheme": "light", "forced_colors": "none"},
    {"color_scheme": "dark", "forced_colors": "none"},
    {"color_scheme": "light", "forced_colors": "active"},
]


def violations(page: Page) -> list[str]:
    """Return what the rules find, one line each."""
    found = Axe().run(page, options={"runOnly": {"type": "tag", "values": RULES}}).response["violations"]
    return [f"{one['id']}: {node['html'][:200]} — {node['failureSummary']}" for one in found for node in one["nodes"]]


def violations_in_every_look(page: Page) -> list[str]:
    """Return what the rules find in light, dark and forced colours."""
    found: list[str] = []
    for look in LOOKS:
        page.emulate_media(**look)
        found += [f"{look['color_scheme']} {look['forced_colors']}: {line}" for line in violations(page)]
    page.emulate_media(color_scheme="light", forced_colors="none")
    return found

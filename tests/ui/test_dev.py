"""Under ``weft dev``, a save that cannot be imported is told on any screen, until the next save mends it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.ui.served import Served

pytestmark = pytest.mark.proof

RELOAD_MS = 120_000
"""Each save starts Python again."""
PROGRAM = """
import weft

app = weft.App()


@app.workflow
async def {name}(ctx: weft.Context) -> str:
    return "done"
"""


class Developed(Served):
    """A program served by ``weft dev``."""

    def command(self) -> list[str]:
        weft, _, *rest = super().command()
        return [weft, "dev", *rest]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("dev") / "app.py"
    file.write_text(PROGRAM.format(name="first"))
    return file


@pytest.fixture(scope="module")
def shop(program: Path) -> Iterator[Served]:
    served = Developed(program.parent, program=program)
    served.start_server()
    yield served
    served.stop_server()


def test_the_error_of_a_save_is_told_on_any_screen_until_it_is_mended(page: Page, program: Path) -> None:
    page.goto("/workflows")
    expect(page.get_by_role("link", name="first")).to_be_visible()

    program.write_text(PROGRAM.format(name="second") + "this is no Python\n")
    expect(page.get_by_text("app.py cannot be imported: SyntaxError")).to_be_visible(timeout=RELOAD_MS)
    expect(page.get_by_role("link", name="first")).to_be_visible()

    program.write_text(PROGRAM.format(name="second"))
    expect(page.get_by_text("cannot be imported")).to_have_count(0, timeout=RELOAD_MS)
    page.reload()
    expect(page.get_by_role("link", name="second")).to_be_visible()

"""The pictures of the documentation are there, somebody sees them, and they can be taken again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.ui import shots
from tests.ui.shots import ALL, IMAGES, ROOT, Shot, Stage

SIZE_AT = slice(16, 24)
"""Where a PNG says its width and height."""
BYTES_MAX = 200_000


def size_of(file: Path) -> tuple[int, int]:
    size = file.read_bytes()[SIZE_AT]
    return int.from_bytes(size[:4]), int.from_bytes(size[4:])


@pytest.mark.parametrize("shot", ALL, ids=[shot.name for shot in ALL])
def test_a_picture_has_its_size_and_is_shown(shot: Shot) -> None:
    file = IMAGES / f"{shot.name}.png"

    assert size_of(file) == (shot.width, shot.height)
    assert file.stat().st_size <= BYTES_MAX
    assert f"(images/{file.name})" in (ROOT / "docs/ui.md").read_text("utf-8")


def test_no_picture_is_left_over() -> None:
    assert {file.stem for file in IMAGES.glob("*.png")} == {shot.name for shot in ALL}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with shots.stage(tmp_path_factory.mktemp("shots")) as found:
        yield found


@pytest.mark.proof
@pytest.mark.parametrize("shot", ALL, ids=[shot.name for shot in ALL])
def test_a_picture_can_be_taken_again_and_its_page_has_no_problem(
    browser: Browser, stage: Stage, tmp_path: Path, shot: Shot
) -> None:
    file = stage.take(browser, shot, tmp_path)

    assert size_of(file) == (shot.width, shot.height)

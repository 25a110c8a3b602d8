"""The pictures of the documentation are there, in the size in which they were taken, and somebody sees them."""

from __future__ import annotations

import pytest

from tests.ui.shots import ALL, IMAGES, ROOT, Shot

SIZE_AT = slice(16, 24)
"""Where a PNG says its width and height."""
BYTES_MAX = 200_000


@pytest.mark.parametrize("shot", ALL, ids=[shot.name for shot in ALL])
def test_a_picture_has_its_size_and_is_shown(shot: Shot) -> None:
    file = IMAGES / f"{shot.name}.png"
    size = file.read_bytes()[SIZE_AT]

    assert (int.from_bytes(size[:4]), int.from_bytes(size[4:])) == (shot.width, shot.height)
    assert file.stat().st_size <= BYTES_MAX
    assert f"(images/{file.name})" in (ROOT / "docs/ui.md").read_text("utf-8")


def test_no_picture_is_left_over() -> None:
    assert {file.stem for file in IMAGES.glob("*.png")} == {shot.name for shot in ALL}

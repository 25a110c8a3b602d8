"""Every text and every line that means something can be told from what it stands on (WCAG 2.2 AA)."""

import pytest

from weft.observe.pictures.colours import DARK, LIGHT, Look, Theme

TEXT, LINE = 4.5, 3.0
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


@THEMES
def test_text_can_be_read_on_its_box_and_on_the_page(theme: Theme) -> None:
    for name, look in looks(theme).items():
        assert contrast(look.text, look.fill) >= TEXT, name
        assert contrast(look.text, theme.page.fill) >= TEXT, name
    for ground in (theme.page.fill, theme.boxes["idle"].fill):
        assert contrast(theme.muted, ground) >= TEXT


@THEMES
def test_the_line_of_a_state_can_be_seen(theme: Theme) -> None:
    for name, look in looks(theme).items():
        if name not in ("idle", "skipped"):  # nothing happened there: their signs and words are text
            assert contrast(look.line, look.fill) >= LINE, name
            assert contrast(look.line, theme.page.fill) >= LINE, name
    assert contrast(theme.control, theme.page.fill) >= LINE


@THEMES
def test_arrows_can_be_seen_and_their_labels_read(theme: Theme) -> None:
    for kind, colour in theme.arrows.items():
        assert contrast(colour, theme.page.fill) >= LINE, kind
        assert contrast(theme.labels[kind], theme.page.fill) >= TEXT, kind


@THEMES
def test_what_can_be_clicked_can_be_read(theme: Theme) -> None:
    assert contrast(theme.boxes["working"].line, theme.page.fill) >= TEXT


def looks(theme: Theme) -> dict[str, Look]:
    return {**theme.boxes, "held": theme.held}


def contrast(first: str, second: str) -> float:
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

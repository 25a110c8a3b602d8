"""Pictures in the terminal: all of it is there, it fits, and colour only adds colour."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from rich.cells import cell_len

from tests import scale
from tests.observe.samples import example, hostile, many
from weft.cli.drawing import render_text
from weft.observe.pictures import Arrow, Box, Picture, picture_of_graph
from weft.observe.pictures.text_wrap import wrapped

PICTURES = many()
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", [20, 90, 1_000])
@pytest.mark.parametrize("name", scale.sample(8, PICTURES))
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    text = render_text(PICTURES[name], width=width)
    assert max(map(cell_len, text.splitlines())) <= width


@pytest.mark.parametrize("name", scale.sample(8, PICTURES))
def test_every_box_and_label_is_there(name: str) -> None:
    picture = PICTURES[name]
    text = render_text(picture, width=2_000)
    for box in picture.boxes:
        assert box.title in text
        assert len(box.subtitle) > 34 or box.subtitle in text
    for arrow in picture.arrows:
        assert arrow.label[:40] in text
    heads = len({arrow.to for arrow in picture.arrows})
    assert text.count("▼") + text.count("→") + text.count("⇢") + text.count("↺") >= heads


@pytest.mark.parametrize("name", scale.sample(8, PICTURES))
def test_an_outline_names_every_box_and_arrow(name: str) -> None:
    boxes = (*PICTURES[name].boxes, *(Box(f"more {n}", f"more {n}") for n in range(150)))
    picture = Picture("many", boxes, PICTURES[name].arrows)
    lines = render_text(picture, width=2_000).splitlines()
    titles = {box.id: box.title or "start" for box in boxes}
    for box in boxes:
        assert any(titles[box.id] in line for line in lines)
    for arrow in picture.arrows:
        sign = {"main": "→", "back": "↺"}.get(arrow.kind, "⇢")
        assert any(sign in line and line.find(titles[arrow.to], line.find(sign)) > 0 for line in lines), arrow
        assert any(arrow.label in line for line in lines)


@pytest.mark.parametrize("width", [40, 200])
@pytest.mark.parametrize("name", scale.sample(8, PICTURES))
def test_colour_changes_nothing_else(name: str, width: int) -> None:
    plain = render_text(PICTURES[name], width=width)
    painted = render_text(PICTURES[name], width=width, color=True)
    assert ANSI.sub("", painted) == plain
    assert "\x1b" not in plain
    assert "\x1b[" in painted


def test_texts_of_users_cannot_speak_to_the_terminal() -> None:
    for width in (30, 80, 1_000):
        text = render_text(hostile(), width=width)
        assert not [char for char in text if ord(char) < 32 and char != "\n"]
        assert "\u202e" not in text
        text.encode()
        assert max(map(cell_len, text.splitlines())) <= width


def test_wide_characters_keep_the_borders_in_place() -> None:
    picture = Picture("p", (Box("a", "日本語の題名", "ステップ"), Box("b", "b")), (Arrow("a", "b"),))
    rows = render_text(picture, width=80).splitlines()[2:6]
    assert len({cell_len(row) for row in rows if row.endswith(("╮", "│", "╯")) and "b" not in row}) == 1


def test_a_graph_that_is_too_wide_becomes_an_outline() -> None:
    picture = picture_of_graph(example("lead-scoring"))
    assert "╭" in render_text(picture, width=200)
    narrow = render_text(picture, width=60)
    assert "╭" not in narrow
    assert "  ├╴output.score >= 50 → standard_sales" in narrow.splitlines()


def test_a_small_graph_looks_like_this() -> None:
    boxes = (
        Box("", shape="start", mark="done", times=1),
        Box("pay", "pay", "charge_card", mark="done", times=2),
        Box("ship", "ship", "workflow parcel", mark="working"),
        Box("sorry", "sorry", "send_apology", shape="end", mark="skipped"),
        Box("finish", "finish", "join all", shape="join", badges=("0 of 1 branches",)),
    )
    arrows = (
        Arrow("", "pay", taken=True),
        Arrow("pay", "ship", "paid", taken=True),
        Arrow("pay", "sorry", "on Declined", "error"),
        Arrow("ship", "finish"),
    )
    assert render_text(Picture("shop", boxes, arrows, "order-1 · running"), width=60) == SHOP


SHOP = """\
shop  order-1 · running

                   ●
                   ▼
            ╭ ✓ pay ×2 ───╮
            │ charge_card │
            ╰────┰───┬────╯
         ┏━━━━━━━┛   ┆
         ┃ paid      ┆ on Declined
         ┃           ╰┄┄┄┄┄┄┄╮
         ▼                   ▼
╭ ● ship ─────────╮  ╭ – sorry ──────╮
│ workflow parcel │  │ send_apology  │
╰────────┬────────╯  ╰───────────────╯
         ▼
╔ ○ finish ═══════╗
║ join all        ║
║ 0 of 1 branches ║
╚═════════════════╝
"""


def test_equal_pictures_give_equal_text() -> None:
    again = many()
    for name in list(PICTURES)[::4]:
        assert render_text(PICTURES[name], width=100, color=True) == render_text(again[name], width=100, color=True)


def test_texts_are_broken_between_words_else_at_joints_else_anywhere() -> None:
    def lines(text: str, width: int, most: int) -> list[str]:
        return wrapped(text, most, lambda part: len(part) <= width, lambda part: part[:width])

    assert lines("while not ready, at most 3", 12, 3) == ["while not", "ready, at", "most 3"]
    assert lines("state.profile.revenue", 14, 3) == ["state.profile.", "revenue"]
    assert lines("x" * 25, 10, 4) == ["x" * 10, "x" * 10, "x" * 5]
    assert lines("a b c d e f", 3, 2) == ["a b", "c d"]
    assert lines("", 3, 2) == []
    assert all(a and b for a, b in pairwise(lines("one  two   three", 4, 9)))


def test_a_start_that_many_arrows_leave_is_as_wide_as_they_are() -> None:
    names = "abcde"
    picture = Picture(
        "",
        boxes=(Box("", shape="start"), *(Box(name, title=name) for name in names)),
        arrows=tuple(Arrow("", name) for name in names),
    )

    first, second, *_ = render_text(picture, width=100).splitlines()

    assert set(first.strip()) == {"●", "─", "┬"}
    assert first.count("┬") == len(names)
    assert all(first[column] in "●─┬" for column, cell in enumerate(second) if cell in "┘│└" and column < len(first))

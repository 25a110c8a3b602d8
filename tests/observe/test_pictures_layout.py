"""Where things are put: nothing overlaps, lines pass nothing but each other, and equal pictures look equal."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise

import pytest

from tests import scale
from tests.observe.samples import many
from weft.cli.drawing.boxes import CAPS
from weft.cli.drawing.boxes import _metrics as cells
from weft.observe.pictures import Arrow, Box, Picture, ranks
from weft.observe.pictures.layout import Area, Layout, lay_out, lay_out_within
from weft.observe.pictures.metrics import LayoutMetrics
from weft.observe.pictures.model import with_printable_texts
from weft.observe.pictures.ranks import BENDS_MAX, rank
from weft.observe.pictures.svg import metrics_of as pixels
from weft.observe.pictures.tracks import LineTurn, lay_tracks

PICTURES = many()
Segment = tuple[tuple[int, int], tuple[int, int]]


def metrics_of(picture: Picture, unit: str) -> LayoutMetrics:
    return pixels(picture) if unit == "pixels" else cells(picture, CAPS[0])


@cache
def laid_out(name: str, unit: str) -> tuple[Picture, Layout]:
    picture = with_printable_texts(PICTURES[name])
    return picture, lay_out(picture, metrics_of(picture, unit))


def touches(one: Area, other: Area) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def passes(segment: Segment, area: Area) -> bool:
    """Whether a line goes through an area; along its upper or lower side is not through."""
    (x, y), (to_x, to_y) = segment
    left, right, top, bottom = min(x, to_x), max(x, to_x), min(y, to_y), max(y, to_y)
    return left < area.x + area.width and right >= area.x and top < area.y + area.height and bottom > area.y


def segments(layout: Layout, number: int) -> list[Segment]:
    return list(pairwise(layout.routes[number].points))


@pytest.mark.parametrize("unit", ["pixels", "cells"])
@pytest.mark.parametrize("name", scale.sample(8, PICTURES))
def test_boxes_and_labels_cover_nothing(name: str, unit: str) -> None:
    _, layout = laid_out(name, unit)
    areas = [*layout.boxes, *(route.label for route in layout.routes if route.label is not None)]
    assert not [pair for pair in combinations(areas, 2) if touches(*pair)]
    for area in areas:
        assert area.x >= 0
        assert area.x + area.width <= layout.width
        assert area.y + area.height <= layout.height


@pytest.mark.parametrize("unit", ["pixels", "cells"])
@pytest.mark.parametrize("name", scale.sample(8, PICTURES))
def test_arrows_go_from_box_to_box_and_through_none(name: str, unit: str) -> None:
    picture, layout = laid_out(name, unit)
    areas = dict(zip((box.id for box in picture.boxes), layout.boxes, strict=True))
    for number, arrow in enumerate(picture.arrows):
        points = layout.routes[number].points
        source, target = areas[arrow.source], areas[arrow.to]
        assert points[0][1] == source.y + source.height
        assert source.x <= points[0][0] < source.x + source.width
        assert points[-1][1] == target.y
        assert target.x <= points[-1][0] < target.x + target.width
        assert all((x == to_x) != (y == to_y) or (x, y) == (to_x, to_y) for (x, y), (to_x, to_y) in pairwise(points))
        assert not [area for area in layout.boxes for part in segments(layout, number) if passes(part, area)]


@pytest.mark.parametrize("name", scale.sample(8, PICTURES))
def test_lines_pass_no_label_but_their_own(name: str) -> None:
    picture, layout = laid_out(name, "pixels")
    for number in range(len(picture.arrows)):
        others = [route.label for other, route in enumerate(layout.routes) if other != number and route.label]
        assert not [area for area in others for part in segments(layout, number) if passes(part, area)]


@pytest.mark.parametrize("name", scale.sample(8, [name for name in PICTURES if not name.startswith("drawn")]))
def test_arrows_that_are_no_way_back_lead_down(name: str) -> None:
    picture, layout = laid_out(name, "pixels")
    areas = dict(zip((box.id for box in picture.boxes), layout.boxes, strict=True))
    for arrow in picture.arrows:
        is_down = areas[arrow.to].y > areas[arrow.source].y
        assert is_down == (arrow.kind != "back")


def test_a_sequence_is_one_straight_line() -> None:
    boxes = tuple(Box(name, name * size) for size, name in enumerate("abcde", 1))
    picture = Picture("row", boxes, tuple(Arrow(a, b) for a, b in pairwise("abcde")))
    for unit in ("pixels", "cells"):
        layout = lay_out(picture, metrics_of(picture, unit))
        assert len({x for route in layout.routes for x, _ in route.points}) == 1


def test_what_can_be_drawn_without_a_crossing_is() -> None:
    arrows = [("s", name) for name in "abcd"] + [("d", "w"), ("c", "x"), ("b", "y"), ("a", "z")]
    picture = Picture("p", tuple(Box(name, name) for name in "sabcdwxyz"), tuple(Arrow(a, b) for a, b in arrows))
    layout = lay_out(picture, pixels(picture))
    areas = dict(zip("sabcdwxyz", layout.boxes, strict=True))
    upper = sorted("abcd", key=lambda name: areas[name].x)
    lower = sorted("wxyz", key=lambda name: areas[name].x)
    assert [dict(arrows[4:])[name] for name in upper] == lower


def test_a_long_chain_and_a_wide_fan_are_laid_out() -> None:
    chain = Picture(
        "chain",
        tuple(Box(str(n), str(n)) for n in range(1_500)),
        tuple(Arrow(str(n), str(n + 1)) for n in range(1_499)),
    )
    assert len(lay_out(chain, pixels(chain)).boxes) == 1_500
    fan = Picture(
        "fan", tuple(Box(str(n), str(n)) for n in range(400)), tuple(Arrow("0", str(n)) for n in range(1, 400))
    )
    layout = lay_out(fan, pixels(fan))
    assert not [pair for pair in pairwise(sorted(layout.boxes[1:], key=lambda area: area.x)) if touches(*pair)]


@pytest.mark.parametrize(("count", "bends_max"), scale.first(1, [(60, 1_000), (200, BENDS_MAX)]))
def test_the_longest_arrows_of_a_picture_with_too_many_bends_are_straight(
    count: int, bends_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "BENDS_MAX", bends_max)
    boxes = tuple(Box(f"n{number}", str(number)) for number in range(count))
    steps = [Arrow(f"n{number}", f"n{number + 1}") for number in range(count - 1)]
    out = [Arrow(f"n{number}", f"n{count - 1}", "otherwise") for number in range(count - 2)]
    picture = Picture("exits", boxes, (*steps, *out))
    metrics = pixels(picture)
    ranked = rank(picture, [(80, 40)] * count, [metrics.label(arrow) for arrow in picture.arrows])
    layout = lay_out(picture, metrics)
    bends = sum(vertex.kind == "bend" for vertex in ranked.vertices)
    assert bends <= 2 * bends_max  # labels can have ranks of their own
    assert not [pair for pair in pairwise(layout.boxes) if touches(*pair)]
    assert layout.boxes[0].y < layout.boxes[-1].y
    assert 0 < len(ranked.direct) < len(out)
    for number in range(len(picture.arrows)):
        points, label = layout.routes[number].points, layout.routes[number].label
        if number in ranked.direct:
            assert len(points) == 2
            assert label is None
        else:
            assert all(x == to_x or y == to_y for (x, y), (to_x, to_y) in pairwise(points))
    assert lay_out_within(picture, metrics, 10**9) is None


def test_turns_that_meet_have_tracks_of_their_own() -> None:
    turns = [LineTurn((number, True), (40 - number, False)) for number in range(0, 40, 3)]
    lay_tracks(turns)
    bent = [turn for turn in turns if not turn.is_straight]
    for one, other in combinations(bent, 2):
        if one.left <= other.right and other.left <= one.right:
            assert one.track != other.track
    assert all(turn.track >= 0 for turn in bent)


def test_a_line_that_must_be_above_another_is() -> None:
    first, second = LineTurn((0, True), (10, False)), LineTurn((10, True), (20, False))
    lay_tracks([first, second])
    assert first.track > second.track, "otherwise the two would lie on each other at 10"


def test_very_many_turns_are_packed() -> None:
    turns = [LineTurn((number, True), (number + 5, False)) for number in range(1_000)]
    assert lay_tracks(turns) == 6
    by_track: dict[int, int] = {}
    for turn in turns:
        assert by_track.get(turn.track, -1) < turn.left
        by_track[turn.track] = turn.right


def test_the_ends_of_an_arrow_must_be_boxes() -> None:
    with pytest.raises(AssertionError):
        Picture("p", (Box("a"),), (Arrow("a", "b"),))
    with pytest.raises(AssertionError):
        Picture("p", (Box("a"), Box("a")))

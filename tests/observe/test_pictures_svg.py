"""SVG: well formed, complete, self-contained, and no text of a user gets out of its place."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests import scale
from tests.observe.samples import HOSTILE, example, hostile, many
from weft.observe.pictures import Box, Picture, picture_of_graph, render_svg
from weft.observe.pictures.model import printable
from weft.observe.pictures.svg_style import fitted, text_width

PICTURES = many()
SVG = "{http://www.w3.org/2000/svg}"


def groups(root: ET.Element, word: str) -> list[ET.Element]:
    return [group for group in root.iter(f"{SVG}g") if word in group.get("class", "").split()]


def words(element: ET.Element) -> str:
    return "".join(text for part in element.iter(f"{SVG}text") for text in part.itertext())


@pytest.mark.parametrize("name", scale.sample(8, PICTURES))
def test_every_box_and_arrow_is_there(name: str) -> None:
    picture = PICTURES[name]
    root = ET.fromstring(render_svg(picture))
    boxes, arrows, labels = groups(root, "box"), groups(root, "arrow"), groups(root, "label")
    for box, known in zip(boxes, picture.boxes, strict=True):
        assert words(box).startswith(known.title)
        assert box.get("class") == f"box {known.mark}"
    assert sorted(known.kind for known in picture.arrows) == sorted(
        arrow.get("class", "").split()[1] for arrow in arrows
    )
    assert sum(known.taken for known in picture.arrows) == len(groups(root, "taken"))
    assert len(labels) == sum(bool(known.label) for known in picture.arrows)
    for arrow in arrows:
        assert arrow.find(f"{SVG}path") is not None
        assert arrow.find(f"{SVG}polygon") is not None


def test_whole_texts_are_in_tooltips() -> None:
    picture = picture_of_graph(example("lead-scoring"))
    tips = [title.text or "" for title in ET.fromstring(render_svg(picture)).iter(f"{SVG}title")]
    assert any("output.score >= 80 && state.profile.revenue > 100000" in tip for tip in tips)
    assert "score → enrich\nwhile output.confidence < 0.8, at most 3" in tips


def test_texts_of_users_are_escaped() -> None:
    svg = render_svg(hostile())
    root = ET.fromstring(svg)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "style", "rect", "g", "path", "polygon", "circle", "text", "tspan"
    }  # fmt: skip
    assert "<script" not in svg
    titles = ["".join(box.find(f"{SVG}text").itertext()) for box in groups(root, "box")]  # type: ignore[union-attr]
    for shown, meant in zip(titles, HOSTILE, strict=True):
        assert printable(meant).startswith(shown.rstrip("…"))
    svg.encode()


def test_nothing_is_fetched_from_elsewhere() -> None:
    svg = render_svg(picture_of_graph(example("order-fulfilment")))
    assert svg.count("http") == svg.count('xmlns="http://www.w3.org/2000/svg"') == 1
    assert "url(" not in svg
    assert "@import" not in svg


def test_it_is_light_and_dark() -> None:
    svg = render_svg(picture_of_graph(example("order-fulfilment")))
    light, _, dark = svg.partition("@media (prefers-color-scheme:dark)")
    for rule in (".page{fill:", ".failed .shape{fill:", ".error path{stroke:"):
        assert rule in light
        assert rule in dark


def test_every_style_rule_stays_in_the_picture() -> None:
    root = ET.fromstring(render_svg(hostile()))
    style = root.find(f"{SVG}style")
    assert style is not None
    assert style.text is not None
    for line in style.text.splitlines():
        selectors = line.partition("{")[0]
        if selectors and not selectors.startswith(("@", "}")):
            assert all(part.startswith(".weft") for part in selectors.split(",")), line


def test_a_picture_without_a_run_has_no_legend_and_no_signs() -> None:
    svg = render_svg(picture_of_graph(example("order-fulfilment")))
    assert 'class="sign"' not in svg
    assert ">idle<" not in svg
    assert ">done<" in render_svg(Picture("p", (Box("a", "a", mark="done", times=1),)))


def test_an_empty_picture_is_a_picture() -> None:
    assert ET.fromstring(render_svg(Picture("nothing", ()))).tag == f"{SVG}svg"


def test_equal_pictures_give_equal_bytes() -> None:
    again = many()
    assert all(render_svg(picture) == render_svg(again[name]) for name, picture in PICTURES.items())


def test_texts_are_cut_to_their_width() -> None:
    assert fitted("short", 11, 100) == "short"
    cut = fitted("a rather long text that does not fit", 11, 100)
    assert cut.endswith("…")
    assert text_width(cut, 11) <= 100
    assert text_width("日本", 10) > text_width("ab", 10)

"""Mermaid: one line per box and arrow, and nothing that a user wrote is taken for Mermaid."""

from __future__ import annotations

import re

import pytest

from tests import scale
from tests.observe.samples import hostile, many
from weft.observe.pictures import Arrow, Box, Picture, render_mermaid
from weft.observe.pictures.mermaid import quoted

PICTURES = many()
TEXT = r'"(?:[\w .,\-×·●<>/]|#\d+;)*"'
BOX = re.compile(rf"    b\d+(\[{TEXT}\]|\{{\{{{TEXT}\}}\}}|\[\[{TEXT}\]\]|\(\[{TEXT}\]\)|\(\({TEXT}\)\))")
ARROW = re.compile(rf"    b\d+ (-->|==>|-\.->)(\|{TEXT}\|)? b\d+")
LOOK = re.compile(r"    (classDef \w+ [\w:#,\- ]+|class b[\db,]+ \w+|linkStyle [\d,]+ stroke:#\w{6})")


def body(picture: Picture) -> list[str]:
    lines = render_mermaid(picture).splitlines()
    assert lines[:4:2] == ["---", "---"]
    assert lines[3] == "flowchart TD"
    return lines[4:]


@pytest.mark.parametrize("name", scale.sample(8, PICTURES))
def test_every_line_is_a_box_an_arrow_or_a_look(name: str) -> None:
    picture = PICTURES[name]
    lines = body(picture)
    assert sum(bool(BOX.fullmatch(line)) for line in lines) == len(picture.boxes)
    assert sum(bool(ARROW.fullmatch(line)) for line in lines) == len(picture.arrows)
    assert [line for line in lines if not (BOX.fullmatch(line) or ARROW.fullmatch(line) or LOOK.fullmatch(line))] == []


def test_texts_of_users_are_quoted() -> None:
    lines = body(hostile())
    assert [line for line in lines if not (BOX.fullmatch(line) or ARROW.fullmatch(line) or LOOK.fullmatch(line))] == []
    assert "script>" not in "".join(lines)
    assert quoted('a "b" <c>') == "a #34;b#34; #60;c#62;"


def test_the_title_is_one_quoted_line() -> None:
    lines = render_mermaid(Picture('a: "b"\n---\nflowchart LR', (Box("a", "a"),))).splitlines()
    assert lines[1] == r'title: "a: \"b\" --- flowchart LR"'


def test_shapes_states_and_ways_have_looks() -> None:
    boxes = (
        Box("s", shape="start"),
        Box("a", "a", mark="working"),
        Box("j", "j", shape="join", mark="done", times=3),
        Box("c", "c", shape="choice"),
        Box("e", "e", shape="end", mark="failed"),
    )
    arrows = (
        Arrow("s", "a", taken=True),
        Arrow("a", "j", "go"),
        Arrow("j", "a", "again", "back"),
        Arrow("j", "c"),
        Arrow("c", "e", "on Error", "error"),
    )
    lines = [line.strip() for line in body(Picture("p", boxes, arrows))]
    assert lines[:5] == ['b0(("●"))', 'b1["<b>a</b>"]', 'b2[["<b>j ×3</b>"]]', 'b3{{"<b>c</b>"}}', 'b4(["<b>e</b>"])']
    assert lines[5:10] == ["b0 ==> b1", 'b1 -->|"go"| b2', 'b2 -->|"again"| b1', "b2 --> b3", 'b3 -.->|"on Error"| b4']
    assert "class b1 working" in lines
    assert "class b0,b3 idle" in lines
    assert "linkStyle 4 stroke:#d24545" in lines


def test_equal_pictures_give_equal_text() -> None:
    again = many()
    assert all(render_mermaid(picture) == render_mermaid(again[name]) for name, picture in PICTURES.items())

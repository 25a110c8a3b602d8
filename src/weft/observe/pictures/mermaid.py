"""Render a picture as a Mermaid flowchart. Pure."""

from __future__ import annotations

import json
from typing import Final

from weft.observe.pictures.colours import LIGHT
from weft.observe.pictures.model import Arrow, Box, Mark, Picture, Shape, with_printable_texts

SHAPES: Final[dict[Shape, tuple[str, str]]] = {
    "plain": ("[", "]"),
    "choice": ("{{", "}}"),
    "join": ("[[", "]]"),
    "start": ("([", "])"),
    "end": ("([", "])"),
}
EXTRAS: Final[dict[Mark, str]] = {
    "working": ",stroke-width:3px",
    "failed": ",stroke-width:3px",
    "skipped": ",stroke-dasharray:4 3",
}


def render_mermaid(picture: Picture) -> str:
    """Return the source of a flowchart. Its boxes are ``b0``, ``b1``, … in the order of the picture."""
    picture = with_printable_texts(picture)
    names = {box.id: f"b{number}" for number, box in enumerate(picture.boxes)}
    lines = []
    title = " · ".join(filter(None, (picture.title, picture.subtitle)))
    if title:
        lines += ["---", f"title: {json.dumps(title, ensure_ascii=False)}", "---"]
    lines.append("flowchart TD")
    lines += [f"    {names[box.id]}{_shape(box)}" for box in picture.boxes]
    lines += [_arrow(names, arrow) for arrow in picture.arrows]
    for mark, look in LIGHT.boxes.items():
        members = [names[box.id] for box in picture.boxes if box.mark == mark]
        if members:
            style = f"fill:{look.fill},stroke:{look.line},color:{look.text}{EXTRAS.get(mark, '')}"
            lines += [f"    classDef {mark} {style}", f"    class {','.join(members)} {mark}"]
    for kind, colour in LIGHT.arrows.items():
        found = [str(number) for number, arrow in enumerate(picture.arrows) if arrow.kind == kind]
        if found and kind != "main":
            lines.append(f"    linkStyle {','.join(found)} stroke:{colour}")
    return "\n".join(lines) + "\n"


def _shape(box: Box) -> str:
    if box.shape == "start" and not box.title:
        return '(("●"))'
    times = f" ×{box.times}" if box.times > 1 else ""
    rows = [f"<b>{quoted(box.title + times)}</b>", quoted(box.subtitle), quoted(" · ".join(box.badges))]
    begin, end = SHAPES[box.shape]
    return f'{begin}"{"<br/>".join(filter(None, rows))}"{end}'


def _arrow(names: dict[str, str], arrow: Arrow) -> str:
    line = "==>" if arrow.taken else "-.->" if arrow.kind in ("error", "timeout") else "-->"
    label = f'|"{quoted(arrow.label)}"|' if arrow.label else ""
    return f"    {names[arrow.source]} {line}{label} {names[arrow.to]}"


def quoted(text: str) -> str:
    """Quote a text for a label. Characters with a meaning in Mermaid or HTML become character codes."""
    return "".join(char if char.isalnum() or char in " .,_-×·" else f"#{ord(char)};" for char in text)

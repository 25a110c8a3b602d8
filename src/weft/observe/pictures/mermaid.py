"""Render a picture as a Mermaid flowchart. Pure."""

from __future__ import annotations

import json
from typing import Final

from weft.observe.pictures.model import Arrow, ArrowKind, Box, Mark, Picture, Shape, cleaned

SHAPES: Final[dict[Shape, tuple[str, str]]] = {
    "plain": ("[", "]"),
    "choice": ("{{", "}}"),
    "join": ("[[", "]]"),
    "start": ("([", "])"),
    "end": ("([", "])"),
}
CLASSES: Final[dict[Mark, str]] = {
    "idle": "fill:#ffffff,stroke:#b4bdc9,color:#1d2733",
    "done": "fill:#edf8f1,stroke:#2f9460,color:#14432b",
    "working": "fill:#e8f1fe,stroke:#2b6fdb,color:#123668,stroke-width:3px",
    "waiting": "fill:#fff6df,stroke:#c48a12,color:#5b3f03",
    "queued": "fill:#f2effc,stroke:#7b66cf,color:#382a75",
    "failed": "fill:#fdecec,stroke:#d24545,color:#6d1717,stroke-width:3px",
    "skipped": "fill:#f6f7f9,stroke:#c3cad4,color:#8b95a3,stroke-dasharray:4 3",
}
STROKES: Final[dict[ArrowKind, str]] = {
    "main": "",
    "back": "stroke:#6b7fd7",
    "error": "stroke:#d24545",
    "timeout": "stroke:#c48a12",
}


def render_mermaid(picture: Picture) -> str:
    """Return the source of a flowchart. Its boxes are ``b0``, ``b1``, … in the order of the picture."""
    picture = cleaned(picture)
    names = {box.id: f"b{number}" for number, box in enumerate(picture.boxes)}
    lines = []
    title = " · ".join(filter(None, (picture.title, picture.subtitle)))
    if title:
        lines += ["---", f"title: {json.dumps(title, ensure_ascii=False)}", "---"]
    lines.append("flowchart TD")
    lines += [f"    {names[box.id]}{_shape(box)}" for box in picture.boxes]
    lines += [_arrow(names, arrow) for arrow in picture.arrows]
    for mark, look in CLASSES.items():
        members = [names[box.id] for box in picture.boxes if box.mark == mark]
        if members:
            lines += [f"    classDef {mark} {look}", f"    class {','.join(members)} {mark}"]
    for kind, stroke in STROKES.items():
        found = [str(number) for number, arrow in enumerate(picture.arrows) if arrow.kind == kind]
        if stroke and found:
            lines.append(f"    linkStyle {','.join(found)} {stroke}")
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

"""Pictures of graphs: one neutral model, drawn for a terminal, as SVG and as Mermaid.

picture_of_graph(graph, state)    a compiled graph, and where a run of it stands
picture_of_plan(plan, state)      the plan of a goal, and where a run of it stands
render_text(picture, width=100)   boxes and arrows in characters, or an outline where they do not fit
render_svg(picture)               one self-contained file, light and dark
render_mermaid(picture)           a Mermaid flowchart

All are pure, and equal pictures give equal text.
"""

from weft.cli.pictures.graphs import edges_taken, picture_of_graph
from weft.cli.pictures.mermaid import render_mermaid
from weft.cli.pictures.model import Arrow, ArrowKind, Box, Mark, Picture, Shape
from weft.cli.pictures.plans import picture_of_plan
from weft.cli.pictures.svg import render_svg
from weft.cli.pictures.text import render_text

__all__ = [
    "Arrow",
    "ArrowKind",
    "Box",
    "Mark",
    "Picture",
    "Shape",
    "edges_taken",
    "picture_of_graph",
    "picture_of_plan",
    "render_mermaid",
    "render_svg",
    "render_text",
]

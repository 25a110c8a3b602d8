"""Pictures of graphs and plans: one model and one layout, drawn as SVG, as Mermaid, and by ``weft.cli.drawing``.

picture_of_graph(graph, state)    a compiled graph, with the state of a run
picture_of_plan(plan, state)      the plan of a goal, with the state of a run
render_svg(picture)               one self-contained file, light and dark
render_mermaid(picture)           a Mermaid flowchart

All functions are pure, and equal pictures give equal texts.
"""

from weft.observe.pictures.graphs import edges_taken, picture_of_graph
from weft.observe.pictures.mermaid import render_mermaid
from weft.observe.pictures.model import Arrow, ArrowKind, Box, BoxGroup, Mark, Picture, Shape
from weft.observe.pictures.plans import picture_of_plan
from weft.observe.pictures.svg import render_svg

__all__ = [
    "Arrow",
    "ArrowKind",
    "Box",
    "BoxGroup",
    "Mark",
    "Picture",
    "Shape",
    "edges_taken",
    "picture_of_graph",
    "picture_of_plan",
    "render_mermaid",
    "render_svg",
]

"""Pictures drawn with the characters of a terminal."""

from weft.cli.drawing.boxes import render_text

__all__ = ["render_text"]

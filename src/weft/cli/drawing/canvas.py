"""A grid of terminal cells: lines that join where they meet, and texts on top of them. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from rich.cells import cell_len

UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8
LIGHT: Final = " ╵╶╰╷│╭├╴╯─┴╮┤┬┼"
HEAVY: Final = " ╹╺┗╻┃┏┣╸┛━┻┓┫┳╋"
"""The characters of light and heavy lines, indexed by the set of directions in which lines leave the cell."""

CROSSINGS: Final = {(False, False): "┼", (True, True): "╋", (True, False): "╂", (False, True): "┿"}
"""The character of a crossing, by whether the vertical and the horizontal line are heavy."""

DASHED: Final = {"│": "┆", "─": "┄", "┃": "┇", "━": "┅"}

RESET: Final = "\x1b[0m"


class Stroke(NamedTuple):
    """The style of a line."""

    style: str = ""
    heavy: bool = False
    dashed: bool = False


class Canvas:
    """A grid of cells. ``style`` is the number of an SGR sequence ("31", "2;32"), or empty."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self._chars = [[" "] * width for _ in range(height)]
        self._styles = [[""] * width for _ in range(height)]
        self._arms: dict[tuple[int, int], int] = {}
        self._heavy: dict[tuple[int, int], int] = {}
        self._dashed: set[tuple[int, int]] = set()

    def write(self, x: int, y: int, text: str, style: str = "") -> int:
        """Write a text over the cells and return the column after it."""
        for char in text:
            size = cell_len(char)
            if size == 0:
                continue
            if x + size > self.width:
                break
            for column in range(x, x + size):
                # The second half of a wide character is not a separate cell.
                self._chars[y][column] = char if column == x else ""
                self._styles[y][column] = style
                self._arms.pop((column, y), None)
            x += size
        return x

    def line(self, begin: tuple[int, int], end: tuple[int, int], stroke: Stroke) -> None:
        """Draw a vertical or horizontal line, including both ends. It joins other lines that end in the same cell."""
        (x, y), (to_x, to_y) = begin, end
        step_x, step_y = (to_x > x) - (to_x < x), (to_y > y) - (to_y < y)
        ahead = {(1, 0): RIGHT, (-1, 0): LEFT, (0, 1): DOWN, (0, -1): UP}.get((step_x, step_y), 0)
        behind = {RIGHT: LEFT, LEFT: RIGHT, DOWN: UP, UP: DOWN}.get(ahead, 0)
        while (x, y) != (to_x, to_y):
            self._arm((x, y), ahead, stroke)
            x, y = x + step_x, y + step_y
            self._arm((x, y), behind, stroke)

    def _arm(self, cell: tuple[int, int], arm: int, stroke: Stroke) -> None:
        self._arms[cell] = self._arms.get(cell, 0) | arm
        if stroke.heavy:
            self._heavy[cell] = self._heavy.get(cell, 0) | arm
        if stroke.dashed:
            self._dashed.add(cell)
        self._styles[cell[1]][cell[0]] = stroke.style

    def _join(self, cell: tuple[int, int]) -> str:
        arms, heavy = self._arms[cell], self._heavy.get(cell, 0)
        if arms == UP | RIGHT | DOWN | LEFT:
            return CROSSINGS[bool(heavy & (UP | DOWN)), bool(heavy & (LEFT | RIGHT))]
        char = (HEAVY if heavy else LIGHT)[arms]
        return DASHED.get(char, char) if cell in self._dashed else char

    def lines(self, *, color: bool) -> list[str]:
        """Return the lines from top to bottom, without trailing blanks."""
        for cell in self._arms:
            self._chars[cell[1]][cell[0]] = self._join(cell)
        lines = []
        for chars, styles in zip(self._chars, self._styles, strict=True):
            end = len(chars)
            while end and chars[end - 1] == " ":
                end -= 1
            row = list(zip(chars[:end], styles[:end], strict=True))
            lines.append(_with_colors(row) if color else "".join(char for char, _ in row))
        return lines


def _with_colors(row: list[tuple[str, str]]) -> str:
    text, current = "", ""
    for char, style in row:
        wanted = current if char == " " or not char else style
        if wanted != current:
            text += (RESET if current else "") + (f"\x1b[{wanted}m" if wanted else "")
            current = wanted
        text += char
    return text + (RESET if current else "")

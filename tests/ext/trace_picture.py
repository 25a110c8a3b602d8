"""``python -m tests.ext.trace_picture`` plays the scene and draws its trace for the documentation."""

from __future__ import annotations

import tempfile
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from tests import servers
from tests.ext.otel_kit import Collector, collecting
from tests.ext.trace_scene import CALLER, played

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "trace.svg"
WIDTH, ROW, NAMES, BARS = 980, 24, 330, 560
COLOURS = {"shop-api": "#3b6fb6", "shop-packing": "#b6703b"}
FAILED, WAITING, COMMIT = "#b3261e", "#9aa5b1", "#334e68"
LEGEND = (
    ("a run or step", COLOURS["shop-api"]),
    ("on the second host", COLOURS["shop-packing"]),
    ("a wait", WAITING),
    ("a failed attempt", FAILED),
    ("a commit", COMMIT),
)
ERROR = 2


class Drawn(NamedTuple):
    span: Any
    service: str
    depth: int


def spans_by_service(collector: Collector, trace: str = CALLER) -> list[tuple[Any, str]]:
    """Every span of a trace with the name of the service that sent it."""
    return [
        (span, next(one.value.string_value for one in part.resource.attributes if one.key == "service.name"))
        for request in collector.received["/v1/traces"]
        for part in request.resource_spans
        for scope in part.scope_spans
        for span in scope.spans
        if span.trace_id.hex() in trace
    ]


def rows(spans: list[tuple[Any, str]]) -> list[Drawn]:
    """Return the tree of spans as rows, parents first, without commits that took no visible time."""
    known = {span.span_id for span, _ in spans}
    below: dict[bytes, list[tuple[Any, str]]] = {}
    for span, service in spans:
        below.setdefault(span.parent_span_id if span.parent_span_id in known else b"", []).append((span, service))
    found: list[Drawn] = []

    def add(parent: bytes, depth: int) -> None:
        for span, service in sorted(below.get(parent, ()), key=lambda one: one[0].start_time_unix_nano):
            if span.name != "commit":
                found.append(Drawn(span, service, depth))
                add(span.span_id, depth + 1)

    add(b"", 0)
    return found


def draw(spans: list[tuple[Any, str]]) -> str:
    """Draw a trace as SVG: a row per span, commits as thin marks on the row of their run."""
    drawn = rows(spans)
    begin = min(one.span.start_time_unix_nano for one in drawn)
    length = max(1, max(one.span.end_time_unix_nano for one in drawn) - begin)
    commits = [span for span, _ in spans if span.name == "commit"]
    parts = []
    for number, (span, service, depth) in enumerate(drawn):
        top = ROW * number + 8
        took = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e6
        parts += [
            _text(12 + 16 * depth, top, span.name),
            _text(NAMES - 12, top, service, at_end=True),
            _bar(span, (begin, length), top + 2, 13, _colour(span, service)),
            *(
                _bar(commit, (begin, length), top + 15, 4, COMMIT)
                for commit in commits
                if commit.parent_span_id == span.span_id
            ),
            _text(WIDTH - 12, top, f"{took:.1f} ms", at_end=True),
        ]
    for number, (text, colour) in enumerate(LEGEND):
        left, top = 12 + 165 * number, ROW * (len(drawn) + 1)
        parts.append(f'<rect x="{left}" y="{top + 2}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(left + 18, top, text))
    height = ROW * (len(drawn) + 2)
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, "</svg>"]) + "\n"


def _colour(span: Any, service: str) -> str:
    if span.status.code == ERROR:
        return FAILED
    is_wait = any(one.key == "weft.wait" for one in span.attributes)
    return WAITING if is_wait else COLOURS.get(service, COLOURS["shop-api"])


def _bar(span: Any, scale: tuple[int, int], top: int, height: int, colour: str) -> str:
    begin, length = scale
    left = NAMES + (span.start_time_unix_nano - begin) / length * BARS
    width = max(1.5, (span.end_time_unix_nano - span.start_time_unix_nano) / length * BARS)
    return f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{height}" rx="1" fill="{colour}"/>'


def _text(left: int, top: int, text: str, *, at_end: bool = False) -> str:
    place = 'text-anchor="end" fill="#52606d"' if at_end else 'fill="#1f2933"'
    return f'<text x="{left}" y="{top + 13}" {place}>{escape(text)}</text>'


def main() -> None:
    url = servers.database("traced")
    servers.empty(url)
    with collecting() as collector, tempfile.TemporaryDirectory() as folder, played(Path(folder), url, collector):
        PICTURE.write_text(draw(spans_by_service(collector)), "utf-8")


if __name__ == "__main__":
    main()

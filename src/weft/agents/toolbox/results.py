"""Results that tools keep: references to them, previews, and reading them again."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from weft.agents.conversation import HeldBlob
from weft.agents.toolbox.definitions import READ_BYTES
from weft.errors import BadValue
from weft.pipelines.rows import field_names
from weft.steps.strangers import fits_inside

VALUE_BYTES_MAX: Final = 4_096
"""Results up to this size are shown whole."""
SAMPLE_ROWS: Final = 3
_TEXT_CHARS: Final = 500
_COLUMNS_MAX: Final = 50
_PREVIEW_LEVELS: Final = 3
"""The result of a tool, the preview in it, and the sample in that."""
_REFERENCE: Final = re.compile(r"cas://sha256:([0-9a-f]{64})")

_encode = msgspec.json.Encoder().encode


class ToolResults:
    """Keeps results, and loads those of a run."""

    def __init__(
        self,
        put: Callable[[bytes], Awaitable[str]],
        get: Callable[[str], Awaitable[bytes]],
        holds: Callable[[str, str], Awaitable[bool]],
    ) -> None:
        """``holds`` says whether the log of a run, by its uid, refers to a blob, by its digest."""
        self._put = put
        self._get = get
        self._holds = holds

    async def keep(self, raw: bytes) -> HeldBlob:
        """Keep a result, and return the reference to it."""
        return HeldBlob(at=f"cas://sha256:{await self._put(raw)}", size=len(raw))

    async def load(self, reference: str, uid: str) -> bytes:
        """Return a result of a run.

        Raises:
            BadValue: this is no reference, or none of this run.
        """
        found = _REFERENCE.fullmatch(reference)
        if found is None or not await self._holds(uid, found[1]):
            raise BadValue(
                f'There is no result "{reference[:100]}" in this run.', hint="Give a result_ref that a tool returned."
            )
        return await self._get(found[1])

    async def load_own(self, held: HeldBlob) -> bytes:
        """Return a blob to which the loop itself refers."""
        return await self._get(held.at.removeprefix("cas://sha256:"))


def describe_result(value: Any) -> dict[str, Any]:
    """Describe a result: what it is, and how it begins."""
    if type(value) is list:
        rows = [row for row in value if type(row) is dict]
        about: dict[str, Any] = {"type": "dataset", "row_count": len(value)}
        if rows:
            about["columns"] = field_names(rows)[:_COLUMNS_MAX]
        return {**about, "sample": [_shorten_value(item) for item in value[:SAMPLE_ROWS]]}
    if type(value) is dict:
        return {"type": "object", "columns": list(value)[:_COLUMNS_MAX], "sample": [_shorten_value(value)]}
    if type(value) is str:
        return {"type": "text", "characters": len(value), "sample": [value[:_TEXT_CHARS]]}
    return {"type": "scalar", "sample": [value]}


def part_of(raw: bytes, offset: int, limit: int | None) -> dict[str, Any]:
    """Return a part of a result: rows of an array, characters of a text or of other JSON."""
    value = msgspec.json.decode(raw)
    if type(value) is list and fits_inside(value, 1):
        rows = value[offset : offset + (limit or len(value))]
        shown: list[Any] = []
        size = 0
        for row in rows:
            size += len(_encode(row))
            if shown and size > READ_BYTES:
                break
            shown.append(row)
        return {"rows": shown, "offset": offset, "row_count": len(value), "more": offset + len(shown) < len(value)}
    text = value if type(value) is str else raw.decode()
    part = text[offset : offset + (limit or READ_BYTES)]
    return {"text": part, "offset": offset, "characters": len(text), "more": offset + len(part) < len(text)}


def _shorten_value(value: Any) -> Any:
    """Return a value, or the beginning of its JSON if it is long or nested too deeply to be shown in a preview."""
    raw = _encode(value)
    if len(raw) <= _TEXT_CHARS and fits_inside(value, _PREVIEW_LEVELS):
        return value
    return f"{raw[:_TEXT_CHARS].decode(errors='ignore')}..."

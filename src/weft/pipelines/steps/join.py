"""The step that joins two tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from weft.pipelines.faults import StepFault
from weft.pipelines.limits import DATA_BYTES_MAX, FIELDS_MAX
from weft.pipelines.rows import Row, check_row_count, check_rows, columns, keys_of
from weft.pipelines.steps.base import PipelineStep

Table = str | list[Any]
"""A reference to stored rows, or the rows themselves."""

_encode = msgspec.json.Encoder().encode


class TableJoin(PipelineStep, frozen=True, kw_only=True):
    """Join the rows with other rows. Fields of the left row come first; a clash is renamed to ``NAME_right``."""

    right: Table
    on: (
        str
        | Annotated[list[str], Meta(min_length=1, max_length=FIELDS_MAX)]
        | Annotated[dict[str, str], Meta(min_length=1, max_length=FIELDS_MAX)]
    )
    how: Literal["inner", "left"] = "inner"
    left: Table | None = None

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The fields that must be equal, left and right."""
        if isinstance(self.on, dict):
            return list(self.on.items())
        return [(name, name) for name in ([self.on] if isinstance(self.on, str) else self.on)]

    def references(self) -> Iterator[str]:
        yield from (table for table in (self.left, self.right) if isinstance(table, str))

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        left = check_rows(data) if self.left is None else _rows(self.left, "left", stored)
        right = _rows(self.right, "right", stored)
        places = _places(_keys(right, [name for _, name in self.pairs], "right"))
        keys = _keys(left, [name for name, _ in self.pairs], "left")
        matches: list[Sequence[int]] = [places.get(key, ()) for key in keys]
        outer = self.how == "left"
        check_row_count(sum(len(found) or outer for found in matches), "the join")
        self._check_size(left, right, matches)
        names = self._right_names(left, right)
        nulls = dict.fromkeys(names.values())
        added = [{names[n]: v for n, v in row.items() if n in names} for row in right]
        nothing = (nulls,) if outer else ()
        return [
            row | other
            for row, found in zip(left, matches, strict=True)
            for other in ([added[index] for index in found] if found else nothing)
        ]

    def _right_names(self, left: Sequence[Row], right: Sequence[Row]) -> dict[str, str]:
        """Return the names of the right fields in the result. A field that both sides are joined on appears once."""
        both = {name for name, other in self.pairs if name == other and "." not in name}
        taken = set(columns(left))
        names: dict[str, str] = {}
        own = [name for name in columns(right) if name not in both]
        taken_after = taken | {name for name in own if name not in taken}
        for name in own:
            new = name
            while new in taken or (new != name and new in taken_after):
                new = f"{new}_right"
            names[name] = new
            taken_after.add(new)
        return names

    def _check_size(self, left: Sequence[Row], right: Sequence[Row], matches: Sequence[Sequence[int]]) -> None:
        """Refuse a join that would be too large, before it is made."""
        often = max(Counter(chain.from_iterable(matches)).values(), default=0)
        most = max(map(len, matches), default=0)
        if most <= 1 and often <= 1:
            return  # no row is repeated, so the result is no larger than both tables
        if len(_encode(left)) * most + len(_encode(right)) * often <= DATA_BYTES_MAX:
            return
        sizes = [len(_encode(row)) for row in right]
        total = 0
        for row, found in zip(left, matches, strict=True):
            total += len(_encode(row)) * len(found) + sum(sizes[index] for index in found)
            if total > 2 * DATA_BYTES_MAX:  # keys that appear once are counted twice; the result is measured again
                raise StepFault(
                    "too_large",
                    f"the join would be larger than {DATA_BYTES_MAX:,} bytes.",
                    "Join on a field that is unique on one side, or filter and select first.",
                )


def _rows(table: Table, side: str, stored: Mapping[str, Any]) -> list[Row]:
    return check_rows(stored[table] if isinstance(table, str) else table, side)


def _keys(rows: Sequence[Row], names: Sequence[str], side: str) -> list[Hashable]:
    """Return the key of each row; None if it meets nothing, because a part of it is null or missing."""
    try:
        keys = keys_of(rows, names)
    except StepFault as fault:
        raise StepFault(fault.code, f"{side}: {fault.message}") from None
    return keys if len(names) == 1 else [None if None in key else key for key in keys]  # type: ignore[operator]


def _places(keys: Sequence[Hashable]) -> dict[Hashable, tuple[int, ...]]:
    """Return where each key is. A key of None meets nothing."""
    places: dict[Hashable, tuple[int, ...]] = dict(zip(keys, zip(range(len(keys))), strict=True))
    if len(places) < len(keys):  # some keys appear more than once
        several: defaultdict[Hashable, list[int]] = defaultdict(list)
        for index, key in enumerate(keys):
            several[key].append(index)
        places = {key: tuple(found) for key, found in several.items()}
    places.pop(None, None)
    return places

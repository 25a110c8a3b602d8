"""The step that joins two tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import contains
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from weft.pipelines.faults import StepFault
from weft.pipelines.limits import DATA_BYTES_MAX, FIELDS_MAX
from weft.pipelines.rows import Row, check_row_count, field_names, read_keys
from weft.pipelines.steps.base import PipelineStep

Table = str | list[Any]
"""A reference to stored rows, or the rows themselves."""

_NAMES_LOOKED_FOR = 3
"""So many names are looked for in all rows more quickly than all names of the rows are collected."""
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
        right, right_keys = _read_joined_table(_table(self.right, stored), [name for _, name in self.pairs], "right")
        left, keys = _read_joined_table(
            data if self.left is None else _table(self.left, stored),
            [name for name, _ in self.pairs],
            "the data" if self.left is None else "left",
        )
        names = self._right_names(left, right)
        nulls = dict.fromkeys(names.values()) if self.how == "left" else None
        last = dict(zip(right_keys, right, strict=True))
        if len(last) == len(right) and len(set(keys)) == len(keys):
            # No row is repeated, so the result is no larger than both tables.
            same = {*map(type, keys), *map(type, right_keys)} in ({int}, {str})
            added = _added_columns(right, names, same_keys=same)
            others = last if added is right else dict(zip(right_keys, added, strict=True))
            others.pop(None, None)
            return _each_once(left, map(others.get, keys), nulls)
        several = _positions_of_keys(right_keys)
        matches: list[Sequence[int]] = [several.get(key, ()) for key in keys]
        check_row_count(sum(len(found) or nulls is not None for found in matches), "the join")
        _check_size(left, right, matches)
        added = _added_columns(right, names)
        nothing = () if nulls is None else (nulls,)
        return [
            row | other
            for row, found in zip(left, matches, strict=True)
            for other in ([added[index] for index in found] if found else nothing)
        ]

    def _right_names(self, left: Sequence[Row], right: Sequence[Row]) -> dict[str, str]:
        """Return the names of the right fields in the result. A field that both sides are joined on appears once."""
        both = {name for name, other in self.pairs if name == other and "." not in name}
        names: dict[str, str] = {}
        own = [name for name in field_names(right) if name not in both]
        if len(own) <= _NAMES_LOOKED_FOR and not any(any(map(contains, left, repeat(name))) for name in own):
            return {name: name for name in own}
        taken: set[str] = set().union(*left)
        taken_after = taken | {name for name in own if name not in taken}
        for name in own:
            new = name
            while new in taken or (new != name and new in taken_after):
                new = f"{new}_right"
            names[name] = new
            taken_after.add(new)
        return names


def _each_once(left: Sequence[Row], others: Iterable[Row | None], nulls: Row | None) -> list[Row]:
    """Join each row with the one row that it meets, if any. With ``nulls``, rows that meet nothing get these."""
    pairs = zip(left, others, strict=True)
    if nulls is None:
        return [row | other for row, other in pairs if other is not None]
    return [row | (nulls if other is None else other) for row, other in pairs]


def _added_columns(right: Sequence[Row], names: Mapping[str, str], *, same_keys: bool = False) -> Sequence[Row]:
    """Return what the right rows add to those on the left.

    ``same_keys``: keys that are equal are also of one type, so that it does not matter whose value is taken.
    """
    if same_keys and all(name == new for name, new in names.items()):
        return right
    return [{names[n]: v for n, v in row.items() if n in names} for row in right]


def _check_size(left: Sequence[Row], right: Sequence[Row], matches: Sequence[Sequence[int]]) -> None:
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


def _table(table: Table, stored: Mapping[str, Any]) -> Any:
    return stored[table] if isinstance(table, str) else table


def _read_joined_table(table: Any, names: Sequence[str], side: str) -> tuple[list[Row], list[Hashable]]:
    """Return the rows and the key of each; None if it meets nothing, because a part of it is null or missing."""
    try:
        rows, keys = read_keys(table, names, side)
    except StepFault as fault:
        if fault.code != "bad_value":
            raise
        raise StepFault(fault.code, f"{side}: {fault.message}") from None
    return rows, keys if len(names) == 1 else [None if None in key else key for key in keys]  # type: ignore[operator]


def _positions_of_keys(keys: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    """Return where each key is. A key of None meets nothing."""
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        places[key].append(index)
    places.pop(None, None)
    return dict(places)

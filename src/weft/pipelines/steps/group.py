"""The step that groups rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta
from msgspec import field as named

from weft.pipelines.faults import StepFault
from weft.pipelines.limits import FIELDS_MAX
from weft.pipelines.rows import (
    MISSING,
    NUMBERS,
    Row,
    check_row_count,
    field_values,
    is_absent,
    key_value,
    named_kind,
    order_key,
    read_keys,
)
from weft.pipelines.steps.base import PipelineStep

_INTEGER_MAX: Final = (1 << 64) - 1
_ABSENT: Final = frozenset({type(None), type(MISSING)})
_COUNTED: Final = NUMBERS | _ABSENT
"""The types of values that can be in a sum. Null and missing values are left out."""
_UNORDERED: Final = frozenset({list, dict})


class GroupBy(PipelineStep, frozen=True, kw_only=True):
    """Make one row per group, in the order in which the groups appear: its keys, and one figure."""

    by: str | Annotated[list[str], Meta(min_length=1, max_length=FIELDS_MAX)]
    agg: Literal["count", "sum", "avg", "min", "max"] = "count"
    field: str = ""
    as_: str = named(name="as", default="")

    @property
    def keys(self) -> list[str]:
        return [self.by] if isinstance(self.by, str) else self.by

    @property
    def result(self) -> str:
        """The name of the figure."""
        return self.as_ or ("count" if self.agg == "count" else f"{self.agg}_{self.field}")

    def check(self) -> None:
        if self.agg != "count" and not self.field:
            raise StepFault("bad_argument", f"{self.agg} needs a field.", 'Add "field".')
        if len(set(self.keys)) < len(self.keys):
            raise StepFault("bad_argument", "by has a name twice.", "Name each field once.")
        if self.result in self.keys:
            raise StepFault("bad_argument", f"{self.result} is both a key and the name of the figure.", 'Add "as".')

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        made = self._in_one_pass(data)
        return self._column_by_column(data) if made is None else made

    def _in_one_pass(self, data: Any) -> list[Row] | None:
        """Group rows by one text, with numbers as values; None if they are not like that. Each row is read once."""
        if type(data) is not list or not self.field or len(self.keys) > 1:
            return None
        check_row_count(len(data))
        (by,), field = self.keys, self.field
        groups: defaultdict[Hashable, list[Any]] = defaultdict(list)
        try:
            for row in data:
                groups[row[by]].append(row[field])
        except (KeyError, TypeError):
            return None
        made: list[Row] = []
        for key, values in groups.items():
            if type(key) is not str or not set(map(type, values)) <= NUMBERS:
                return None
            made.append({by: key, self.result: self._figure(values)})
        return made

    def _column_by_column(self, data: Any) -> list[Row]:
        rows, keys = read_keys(data, self.keys)
        values = field_values(rows, self.field) if self.field else [1] * len(rows)
        present = self._checked(values)
        groups: defaultdict[Hashable, list[Any]] = defaultdict(list)
        for key, value in zip(keys, values, strict=True):
            groups[key].append(value)
        return [
            {**self._key_fields(key), self.result: self._figure(found if present else _present(found))}
            for key, found in groups.items()
        ]

    def _checked(self, values: Sequence[Any]) -> bool:
        """Return whether no value is null or missing. Raises StepFault if one of them has no sum, or no order."""
        kinds = set(map(type, values))
        if self.agg in ("sum", "avg") and not kinds <= _COUNTED:
            index = next(index for index, value in enumerate(values) if type(value) not in _COUNTED)
            raise StepFault("bad_value", f"{self.field} of row {index} is not a number.", "Filter such rows first.")
        if self.agg in ("min", "max") and not kinds.isdisjoint(_UNORDERED):
            index = next(index for index, value in enumerate(values) if type(value) in _UNORDERED)
            message = f"{self.field} of row {index}: {named_kind(values[index])} has no order."
            raise StepFault("bad_value", message)
        return kinds.isdisjoint(_ABSENT)

    def _key_fields(self, key: Hashable) -> Row:
        """Return the fields that a group has in common."""
        if isinstance(self.by, str) or len(self.by) == 1:
            return {self.keys[0]: key_value(key)}
        return dict(zip(self.keys, map(key_value, key), strict=True))  # type: ignore[call-overload]

    def _figure(self, values: list[Any]) -> Any:
        """Return the figure of a group."""
        if self.agg == "count":
            return len(values)
        if not values:
            return 0 if self.agg == "sum" else None
        if self.agg in ("sum", "avg"):
            return self._total(values)
        return (min if self.agg == "min" else max)(values, key=order_key)

    def _total(self, numbers: list[int | float]) -> int | float:
        try:
            total = sum(numbers) if float not in set(map(type, numbers)) else math.fsum(numbers)
            figure = total / len(numbers) if self.agg == "avg" else total
        except OverflowError:
            figure = math.inf
        if not abs(figure) <= _INTEGER_MAX and (type(figure) is int or not math.isfinite(figure)):
            raise StepFault("bad_value", f"the {self.agg} of {self.field} is too large for a number.")
        return figure


def _present(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if not is_absent(value)]

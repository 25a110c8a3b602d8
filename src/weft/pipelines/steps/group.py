"""The step that groups rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec import field as named

from weft.pipelines.faults import StepFault
from weft.pipelines.limits import FIELDS_MAX
from weft.pipelines.rows import MISSING, NUMBERS, Row, check_rows, is_absent, is_number, keys_of, order_key, values_of
from weft.pipelines.steps.base import PipelineStep

_INTEGER_MAX = (1 << 64) - 1


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
            raise StepFault("bad_argument", f"{self.result} is a key and the name of the figure.", 'Add "as".')

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        rows = check_rows(data)
        groups = _groups(keys_of(rows, self.keys))
        values = values_of(rows, self.field) if self.field else None
        is_clean = values is not None and set(map(type, values)) <= NUMBERS
        return [
            {**_key_fields(rows[members[0]], self.keys), self.result: self._figure(members, values, is_clean=is_clean)}
            for members in groups
        ]

    def _figure(self, members: list[int], values: Sequence[Any] | None, *, is_clean: bool) -> Any:
        """Return the figure of a group. ``is_clean``: all values are numbers."""
        if values is None:
            return len(members)
        if self.agg in ("sum", "avg") and is_clean:
            return self._total(list(map(values.__getitem__, members)))
        present = [index for index in members if not is_absent(values[index])]
        if self.agg == "count":
            return len(present)
        if not present:
            return 0 if self.agg == "sum" else None
        if self.agg in ("min", "max"):
            choose = min if self.agg == "min" else max
            return values[choose(present, key=lambda index: self._order(index, values[index]))]
        for index in present:
            if not is_number(values[index]):
                raise StepFault("bad_value", f"{self.field} of row {index} is not a number.", "Filter such rows first.")
        return self._total([values[index] for index in present])

    def _order(self, index: int, value: Any) -> tuple[int, Any]:
        try:
            return order_key(value)
        except StepFault as fault:
            raise StepFault(fault.code, f"{self.field} of row {index}: {fault.message}") from None

    def _total(self, numbers: list[int | float]) -> int | float:
        try:
            total = sum(numbers) if float not in set(map(type, numbers)) else math.fsum(numbers)
            figure = total / len(numbers) if self.agg == "avg" else total
        except OverflowError:
            figure = math.inf
        if not abs(figure) <= _INTEGER_MAX and (type(figure) is int or not math.isfinite(figure)):
            raise StepFault("bad_value", f"the {self.agg} of {self.field} is too large for a number.")
        return figure


def _groups(keys: Sequence[Hashable]) -> Iterable[list[int]]:
    """Return the indexes of the rows of each group."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        groups[key].append(index)
    return groups.values()


def _key_fields(row: Row, keys: Sequence[str]) -> Row:
    return {name: None if (value := values_of([row], name)[0]) is MISSING else value for name in keys}

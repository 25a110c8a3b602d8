"""Steps that keep some rows, or some fields."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from weft.pipelines.faults import StepFault
from weft.pipelines.limits import FIELDS_MAX
from weft.pipelines.rows import MISSING, NUMBERS, Row, check_row_count, check_rows, equal, field_reader, read_column
from weft.pipelines.steps.base import PipelineStep

Keep = Callable[[Sequence[Row], str, Any], list[Row]]
_KEEP: Final[dict[str, Keep]] = {  # written out, because a call per row costs more than the comparison
    "<": lambda rows, field, than: [r for r in rows if (v := r[field]) < than and v is not True and v is not False],
    ">": lambda rows, field, than: [r for r in rows if (v := r[field]) > than and v is not True and v is not False],
    "<=": lambda rows, field, than: [r for r in rows if (v := r[field]) <= than and v is not True and v is not False],
    ">=": lambda rows, field, than: [r for r in rows if (v := r[field]) >= than and v is not True and v is not False],
    "==": lambda rows, field, than: [r for r in rows if (v := r[field]) == than and v is not True and v is not False],
}
"""How rows are kept whose values are all numbers or texts. They raise KeyError for a row that does not have the field,
and TypeError for values that have no order and for what is not a row."""
_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
}
_PLAIN: Final = frozenset({int, float, str})
"""The types of values that Python compares as steps do, but for booleans, which it takes for numbers."""


class FieldCondition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A condition on one field of a row."""

    field: str
    op: Literal["<", ">", "<=", ">=", "==", "!="]
    value: Any

    def keep(self, data: Any) -> list[Row]:
        """Return the rows that have the field and meet the condition. Raises StepFault if the data is not rows."""
        wanted = self.value
        if type(data) is list and type(wanted) in _PLAIN and self.op in _KEEP:
            with suppress(KeyError, TypeError):
                check_row_count(len(data))
                return _KEEP[self.op](data, self.field, wanted)
        kinds = NUMBERS if type(wanted) in NUMBERS else frozenset({type(wanted)})
        pairs = zip(*read_column(data, self.field), strict=True)
        if type(wanted) in (list, dict):
            same = self.op == "=="
            if self.op not in ("==", "!="):
                return []
            return [row for row, value in pairs if value is not MISSING and equal(value, wanted) is same]
        if self.op == "!=":
            return [
                row for row, value in pairs if value is not MISSING and (type(value) not in kinds or value != wanted)
            ]
        if wanted is None:
            return [row for row, value in pairs if value is None] if self.op == "==" else []
        compare = _ORDER[self.op]
        return [row for row, value in pairs if type(value) in kinds and compare(value, wanted)]


class TableFilter(PipelineStep, frozen=True, kw_only=True):
    """Keep the rows that meet a condition, or all conditions of a list."""

    grows: ClassVar[bool] = False
    condition: FieldCondition | Annotated[list[FieldCondition], Meta(min_length=1, max_length=FIELDS_MAX)]

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        for condition in [self.condition] if isinstance(self.condition, FieldCondition) else self.condition:
            data = condition.keep(data)
        return data


class TableSelect(PipelineStep, frozen=True, kw_only=True):
    """Keep exactly these fields, in this order. A field that a row does not have is null."""

    fields: Annotated[list[str], Meta(min_length=1, max_length=FIELDS_MAX)]

    def check(self) -> None:
        if len(set(self.fields)) < len(self.fields):
            raise StepFault("bad_argument", "fields has a name twice.", "Name each field once.")

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        rows = check_rows(data)
        fields = self.fields
        if not any("." in field for field in fields):
            return [{field: row.get(field) for field in fields} for row in rows]
        readers = [(field, field_reader(field)) for field in fields]
        return [{field: _or_null(read(row)) for field, read in readers} for row in rows]


def _or_null(value: Any) -> Any:
    return None if value is MISSING else value

"""Steps that order rows and take the first of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from weft.pipelines.faults import StepFault
from weft.pipelines.rows import NUMBERS, check_rows, is_absent, order_key, read_column
from weft.pipelines.steps.base import PipelineStep


class TableSort(PipelineStep, frozen=True, kw_only=True):
    """Sort rows by a field. Stable. Booleans come before numbers, numbers before texts; null and missing are last."""

    grows: ClassVar[bool] = False
    field: str
    order: Literal["asc", "desc"] = "asc"

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        rows, values = read_column(data, self.field)
        descending = self.order == "desc"
        kinds = set(map(type, values))
        if kinds == {str} or (kinds and kinds <= NUMBERS):
            following = iter(values).__next__
            return sorted(rows, key=lambda _: following(), reverse=descending)  # keys are asked for once, in order
        present = [index for index, value in enumerate(values) if not is_absent(value)]
        order = sorted(present, key=lambda index: self._key(index, values[index]), reverse=descending)
        last = [row for row, value in zip(rows, values, strict=True) if is_absent(value)]
        return [*(rows[index] for index in order), *last]

    def _key(self, index: int, value: Any) -> tuple[int, Any]:
        try:
            return order_key(value)
        except StepFault as fault:
            raise StepFault(fault.code, f"{self.field} of row {index}: {fault.message}") from None


class TopK(PipelineStep, frozen=True, kw_only=True):
    """Take the first k rows."""

    grows: ClassVar[bool] = False
    k: Annotated[int, Meta(ge=1)]

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        return check_rows(data)[: self.k]

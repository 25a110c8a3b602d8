"""The step that extracts parts of texts by a regular expression."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from weft.pipelines.faults import StepFault
from weft.pipelines.limits import PATTERN_CHARS_MAX
from weft.pipelines.rows import check_rows, field_values, is_absent, named_kind
from weft.pipelines.steps.base import PipelineStep

_PROGRAM_BYTES_MAX = 8 << 20


class RegexExtract(PipelineStep, frozen=True, kw_only=True):
    """Put the first match of a pattern in a text into a field, or null; with ``all``, an array of all matches."""

    needs_process: ClassVar[bool] = True
    field: str
    pattern: Annotated[str, Meta(min_length=1, max_length=PATTERN_CHARS_MAX)]
    group: Annotated[int, Meta(ge=0)] | str = 0
    into: str = ""
    all: bool = False

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        rows = check_rows(data)
        pattern = compile_linear_pattern(self.pattern)
        group = self._group(pattern)
        into = self.into or self.field
        return [
            {**row, into: self._found(pattern, group, index, value)}
            for index, (row, value) in enumerate(zip(rows, field_values(rows, self.field), strict=True))
        ]

    def _group(self, pattern: Any) -> int:
        """Return the number of the group. Raises StepFault."""
        number = pattern.groupindex.get(self.group) if isinstance(self.group, str) else self.group
        if number is None or number > pattern.groups:
            known = ", ".join([*map(str, range(pattern.groups + 1)), *pattern.groupindex])
            raise StepFault("bad_argument", f"the pattern has no group {self.group!r}.", f"Its groups are {known}.")
        return int(number)

    def _found(self, pattern: Any, group: int, index: int, value: Any) -> Any:
        if is_absent(value):
            return [] if self.all else None
        if type(value) is not str:
            raise StepFault("bad_value", f"{self.field} of row {index} is {named_kind(value)}, not a text.")
        if self.all:
            return [match.group(group) for match in pattern.finditer(value)]
        match = pattern.search(value)
        return match.group(group) if match is not None else None


@lru_cache(maxsize=64)
def compile_linear_pattern(pattern: str) -> Any:
    """Compile a pattern for matching in linear time. Raises StepFault."""
    import re2  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - an extra

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PROGRAM_BYTES_MAX
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        message = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise StepFault(
            "bad_argument",
            f"the pattern cannot be used: {message}.",
            "Patterns have no look-around and no back-references.",
        ) from None

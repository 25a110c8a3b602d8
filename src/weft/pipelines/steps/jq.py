"""The step that runs a jq program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from weft.pipelines.faults import StepFault
from weft.pipelines.jq_scan import EXACT_MAX, GUARD, check_program
from weft.pipelines.limits import QUERY_CHARS_MAX
from weft.pipelines.steps.base import PipelineStep

_LONG_NUMBER: Final = re.compile(rb"[0-9]{16}")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class JqTransform(PipelineStep, frozen=True, kw_only=True):
    """Run a jq program. One output is the result; several become an array, none an empty one."""

    needs_process: ClassVar[bool] = True
    query: Annotated[str, Meta(min_length=1, max_length=QUERY_CHARS_MAX)]

    def check(self) -> None:
        check_program(self.query)

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        raw = _encode(data)
        if _LONG_NUMBER.search(raw):
            _refuse_inexact(data, "")
        try:
            text = compile_jq(self.query).input_text(raw.decode()).text()
        except ValueError as error:
            raise StepFault("bad_value", f"the program failed: {_jq_error_line(error)}") from None
        outputs = [_decode(line) for line in text.split("\n")] if text else []
        return outputs[0] if len(outputs) == 1 else outputs


@lru_cache(maxsize=64)
def compile_jq(query: str) -> Any:
    """Compile a jq program. Raises StepFault."""
    import jq  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - an extra

    try:
        return jq.compile(f"{GUARD}{query}")
    except ValueError as error:
        raise StepFault("bad_argument", f"query is not a jq program: {_jq_error_line(error)}") from None


def _refuse_inexact(value: Any, place: str) -> None:
    """Raise StepFault if jq would round an integer."""
    if type(value) is int and abs(value) > EXACT_MAX:
        raise StepFault("bad_value", f"jq would round {value} at {place or '.'}.", "Pass long numbers as text.")
    if type(value) is list:
        for index, item in enumerate(value):
            _refuse_inexact(item, f"{place}[{index}]")
    elif type(value) is dict:
        for name, item in value.items():
            _refuse_inexact(item, f"{place}.{name}")


def _jq_error_line(error: ValueError) -> str:
    """Return what jq says, without what it says about the text that comes before the program."""
    text = " ".join(str(error).split()).removeprefix("jq: error: ").partition(" at <top-level>")[0]
    return f"{text[:300].rstrip('.')}."

"""Commands as mail: every command that is sent can be read."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from msgspec import Raw

from weft.core import commands as c
from weft.core.events import ScheduleSpec
from weft.errors import Failure

GIVEN: dict[Any, Any] = {
    Raw: Raw(b"1"),
    Failure: Failure(type="E", message="m"),
    ScheduleSpec: ScheduleSpec(workflow="w", input=Raw(b"{}"), every_ms=1),
    str: "text",
    bool: True,
    dict[str, int]: {"tokens": 5},
}


def _required(kind: type[c.Mailed]) -> dict[str, Any]:
    return {field.name: GIVEN.get(field.type, 7) for field in msgspec.structs.fields(kind) if field.required}


def _empty(default: Any) -> Any:
    """Return an empty value like the default of a field, but not the same object."""
    return Raw(bytes(0)) if isinstance(default, Raw) else type(default)()


@pytest.mark.parametrize("kind", get_args(c.Mailed), ids=lambda kind: kind.__name__)
def test_every_command_can_be_read_from_mail(kind: type[c.Mailed]) -> None:
    plain = kind(**_required(kind))
    assert c.decode(c.encode(plain)) == plain
    for field in msgspec.structs.fields(kind):
        if field.required or "Literal" in str(field.type):
            continue
        default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
        empty = _empty(default)
        read = c.decode(c.encode(msgspec.structs.replace(plain, **{field.name: empty})))
        assert getattr(read, field.name) == (default if isinstance(default, Raw) else empty), field.name

"""A workflow that is named together with one of its versions: ``app.start("order:live", {...})``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.authoring.runnable import Invocation, Runnable
from weft.core import values
from weft.runtime.orders import StartOrder
from weft.steps.codec import Codec


class NamedVersion(Runnable[Any]):
    """A version that the store knows by a tag or by itself. Whether it takes an input is known when it is started."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def version(self) -> str:
        return ""

    @property
    def result(self) -> Codec[Any]:
        return Codec.of(Any)

    def given(self, input: Mapping[str, Any]) -> bytes:
        return values.encode(dict(input), what=f"{self.name} got")

    def order(self, invocation: Invocation, **options: Any) -> StartOrder:
        """Return the order that starts this version; its program checks the input."""
        return StartOrder(workflow=self.name, input=values.decode(invocation.given), **options)

"""The machine of code runs."""

from __future__ import annotations

from typing import Self

import msgspec

from weft.core import commands as c
from weft.core.code import plain
from weft.core.code.locations import location_key
from weft.core.code.state import CodeIndex, CodeState, Entry
from weft.core.code.style import CodeStyle
from weft.core.events import AnyEvent
from weft.core.run.kernel import Kernel

_decoder: msgspec.json.Decoder[CodeState] = msgspec.json.Decoder(CodeState)
_encode = msgspec.json.Encoder().encode


class CodeMachine(Kernel):
    """The machine of one code run."""

    __slots__ = ()

    state: CodeState
    style: CodeStyle

    def __init__(self, state: CodeState) -> None:
        super().__init__(state, CodeStyle(state))

    @classmethod
    def fresh(cls, uid: str) -> Self:
        """Create a run with an empty log."""
        return cls(CodeState(uid=uid))

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        """Restore a run from a snapshot with the same ``FOLD`` version."""
        return cls(_decoder.decode(snapshot))

    def fold(self, event: AnyEvent, *, at: int) -> None:
        if not plain.fold_event(self.style, event, at):
            self.evolve(event, at=at)

    def snapshot(self) -> bytes:
        """Return the state as JSON."""
        return _encode(self.state)

    @property
    def index(self) -> CodeIndex:
        """The index of entries by location."""
        return self.style.index

    def entry(self, ask: c.Ask) -> Entry:
        """Return the entry of an ask that was just recorded."""
        entry = self.style.index.find(location_key(ask.scope, ask.name, ask.n))
        assert entry is not None, "a decided ask creates an entry"
        return entry

    def lookup(self, key: str) -> Entry | None:
        """Return the entry at a location, if there is one."""
        return self.style.index.find(key)

"""Prepare the start of a run that has no events, by the rule of its workflow about starts.

The starts that a batch has collected become one. A singleton that was created without its slot, because another run or
a schedule started it, takes the slot now. If another run has it, the start is refused, and the run fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.ids import tenant_prefix
from weft.core.start_rules import BATCH, DEBOUNCE, slot_of
from weft.errors import RunOpen, WeftError
from weft.ports.new_run import START_MAIL
from weft.ports.starts import RuledStarts
from weft.ports.store import Mail, RunRow
from weft.runtime.catalogue import Callee, HostCatalogue
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.start_rules import DeclaredRule, start_key
from weft.runtime.typed_words import parse_word
from weft.runtime.values import ValueStore


class FirstStarts:
    """Prepares the starts of runs that begin here."""

    def __init__(
        self, starts: RuledStarts, catalogue: HostCatalogue, values: ValueStore, retry: RetryUntilAvailable
    ) -> None:
        self._starts = starts
        self._catalogue = catalogue
        self._values = values
        self._retry_until_available = retry

    async def prepare(self, row: RunRow, callee: Callee | None, inbox: Sequence[Mail]) -> Sequence[Mail]:
        """Return the inbox of a run that has no events, as its workflow's rule about starts wants it."""
        if row.slot is not None and row.slot.startswith(BATCH):
            return await self._with_one_start(inbox)
        if row.slot is not None and row.slot.startswith(DEBOUNCE):
            return [_of_this_run(row, mail) if mail.id == START_MAIL else mail for mail in inbox]
        version = row.version if callee is None else callee.version
        declared = self._catalogue.start_rule(row.workflow, version) if row.slot is None else None
        if declared is None or declared.rule.kind != "singleton":
            return inbox
        return [await self._with_slot(row, declared, mail) if mail.id == START_MAIL else mail for mail in inbox]

    async def _with_one_start(self, inbox: Sequence[Mail]) -> Sequence[Mail]:
        """Give the inputs of all starts to the first. The others are read too, and have no effect."""
        starts = [(mail, command) for mail in inbox if isinstance(command := c.decode(mail.body), c.StartRun)]
        if len(starts) < 2:
            return inbox
        items: dict[str, list[Any]] = {}
        for _, start in starts:
            given = msgspec.json.decode(await self._values.load(bytes(start.input)))
            for name, each in given.items():
                items.setdefault(name, []).extend(parse_word(each) if name in start.words else each)
        first, start = starts[0]
        kept = await self._values.keep(values.encode_trusted(items))
        body = c.encode(msgspec.structs.replace(start, input=Raw(kept), words=[]))
        return [msgspec.structs.replace(first, body=body) if mail is first else mail for mail in inbox]

    async def _with_slot(self, row: RunRow, declared: DeclaredRule, mail: Mail) -> Mail:
        start = c.decode(mail.body)
        assert isinstance(start, c.StartRun), "the first mail of a run is its start"
        refused = await self._start_refusal(row, declared, start)
        if refused is None:
            return mail
        start = msgspec.structs.replace(start, refused=refused.message, refused_as=refused.code)
        return msgspec.structs.replace(mail, body=c.encode(start))

    async def _start_refusal(self, row: RunRow, declared: DeclaredRule, start: c.StartRun) -> WeftError | None:
        """Take the slot of a run's key. Returns why the run cannot begin, if it cannot."""
        try:
            key = start_key(declared, row.workflow, await self._values.load(bytes(start.input)), start.words)
        except WeftError as error:
            return error
        slot = slot_of(declared.rule, row.workflow, key.text, tenant_prefix(row.id))
        other = await self._retry_until_available(lambda: self._starts.take_slot(row.uid, slot))
        return RunOpen(f"{other} is open with the same key") if other is not None else None


def _of_this_run(row: RunRow, mail: Mail) -> Mail:
    """Return the newest start of a debounced run, under the id and with the attributes of the first."""
    start = c.decode(mail.body)
    assert isinstance(start, c.StartRun), "the first mail of a run is its start"
    start = msgspec.structs.replace(start, run_id=row.id, attributes=dict(row.attributes), priority=row.priority)
    return msgspec.structs.replace(mail, body=c.encode(start))

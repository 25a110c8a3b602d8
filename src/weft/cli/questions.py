"""Questions that runs ask people: which are open, and how one is answered."""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from weft.cli.arguments import pairs, plain
from weft.cli.output import age, console, document, iso, moment, print_json, print_table
from weft.cli.place import described, exists, opened, url_of
from weft.cli.steering import reached, report
from weft.core.ids import RunId
from weft.core.state import Question
from weft.errors import Corrupt, NotFound, UsageError
from weft.ports.store import OPEN_STATUSES, RunQuery, RunRow
from weft.runtime.door import Door
from weft.runtime.schemas import check_schema


class Open(msgspec.Struct, frozen=True):
    """An open question and where it stands."""

    row: RunRow
    location: str
    question: Question

    @property
    def id(self) -> str:
        return f"{self.row.id}:{self.location}"


class Given(msgspec.Struct, frozen=True):
    """An answer as it was typed."""

    approved: bool
    form: Sequence[str]
    reason: str
    by: str | None


async def print_inbox(*, url: str | None, app: str | None, json: bool) -> None:
    """All open questions, those that wait longest first."""
    address = url_of(url, app)
    questions: list[Open] = []
    if exists(address):
        async with opened(address) as door:
            questions = [question async for question in _all_open(door)]
    questions.sort(key=lambda item: item.question.since)
    if json:
        print_json({"store": address, "questions": [_described(item) for item in questions]})
        return
    out = console()
    if not questions:
        out.print(f"No open questions. Store: {described(address)}.")
        return
    now = _now()
    rows = [
        (
            item.id,
            item.question.title,
            age(now - item.question.since),
            moment(item.question.due) if item.question.due else "",
            ", ".join(item.question.of),
        )
        for item in questions
    ]
    print_table(out, ("ID", "QUESTION", "WAITS", "DUE", "OF"), rows)
    out.print(f"[dim]Store: {described(address)}. Answer: weft decide ID approve|reject[/dim]")


async def _all_open(door: Door) -> AsyncIterator[Open]:
    for status in OPEN_STATUSES:
        after: str | None = None
        while True:
            page = await door.search(RunQuery(status=status, after=after, limit=500))
            for row in page.rows:
                # A log that cannot be read hides its own questions, not those of others.
                with contextlib.suppress(Corrupt):
                    for question in await _open_in(door, row):
                        yield question
            after = page.cursor
            if after is None:
                break


async def _open_in(door: Door, row: RunRow) -> list[Open]:
    if not row.seq or row.fault is not None:
        return []
    machine = await door.machine(row)
    return [Open(row, machine.location(number), question) for number, question in machine.state.asks.items()]


def _described(item: Open) -> dict[str, Any]:
    question = item.question
    return {
        "id": item.id,
        "run": item.row.id,
        "location": item.location,
        "workflow": item.row.workflow,
        "title": question.title,
        "since": iso(question.since),
        "due": iso(question.due),
        "of": question.of,
        "quorum": question.quorum,
        "approvals": question.approvals,
        "form": question.form,
        "about": document(bytes(question.about)),
    }


async def answer_question(question: str, given: Given, *, url: str | None, app: str | None) -> None:
    """Answer an open question. Raises NotFound, AlreadyDecided, BadValue."""
    async with opened(url, app) as door:
        row, location = await _meant(door, question)
        schema = next((item.question.form for item in await _open_in(door, row) if item.location == location), None)
        by = given.by if given.by is not None else _login()
        form = form_of(given.form, schema) if given.form else None
        handle = reached(door, row)
        await handle.decide(location, approved=given.approved, by=by, reason=given.reason, form=form)
        done = "approved" if given.approved else "rejected"
        await report(door, row, f"{done} {row.id}:{location}{f' as {by}' if by else ''}", "the answer is kept")


async def _meant(door: Door, question: str) -> tuple[RunRow, str]:
    """The run and the place: both may contain colons, so the longest id that exists is taken."""
    whole = await door.store.directory.find(RunId(question))
    if whole is not None or ":" not in question:
        row = whole or await door.by_prefix(question)
        return row, _only(row, await _open_in(door, row))
    cut = question.rfind(":")
    while cut > 0:
        row_found = await door.store.directory.find(RunId(question[:cut]))
        if row_found is not None:
            return row_found, question[cut + 1 :]
        cut = question.rfind(":", 0, cut)
    run, _, location = question.rpartition(":")
    return await door.by_prefix(run), location


def _only(row: RunRow, questions: Sequence[Open]) -> str:
    if len(questions) == 1:
        return questions[0].location
    if not questions:
        raise NotFound(f"{row.id} has no open question.", hint=f"weft explain {row.id} says what it waits for.")
    raise UsageError(
        f"{row.id} has {len(questions)} open questions.", hint=f"Say which: {', '.join(item.id for item in questions)}"
    )


def form_of(words: Sequence[str], schema: dict[str, Any] | None) -> Any:
    """What was typed for a form: one JSON value, or fields by name. Raises UsageError."""
    if len(words) == 1 and "=" not in words[0].partition('"')[0]:
        try:
            return msgspec.json.decode(words[0])
        except msgspec.DecodeError as error:
            raise UsageError(f"{words[0]!r} is neither JSON nor KEY=VALUE.", hint="--form carrier=dhl") from error
    return {key: _field(key, text, schema or {}) for key, text in pairs(words).items()}


def _field(key: str, text: str, schema: dict[str, Any]) -> Any:
    """The word as the field's schema wants it: as text where that fits, else as JSON."""
    definitions = schema.get("$defs", {})
    whole = definitions.get(schema.get("$ref", "").rpartition("/")[2], schema)
    field = whole.get("properties", {}).get(key)
    if isinstance(field, dict) and check_schema({**field, "$defs": definitions}, msgspec.json.encode(text)) is None:
        return text
    return plain(text)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def _now() -> int:
    # Imported with the store anyway; the listing needs the same clock as what it lists.
    from weft.runtime.clock import SystemClock

    return SystemClock().now_ms()

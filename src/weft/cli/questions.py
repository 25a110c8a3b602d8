"""List and answer the open questions of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console

from weft.cli.arguments import split_pairs
from weft.cli.login import login
from weft.cli.messages import say
from weft.cli.output import (
    age_text,
    console,
    iso_time,
    pretty_result,
    print_json,
    print_table,
    recorded_document,
    time_text,
)
from weft.cli.run_control import print_done, run_handle
from weft.cli.store_access import open_service, store_exists, store_label, url_of
from weft.core.escapes import escape_line
from weft.core.ids import RunId
from weft.errors import NotFound, UsageError
from weft.observe.questions import OpenQuestion, all_open, open_in, questions_at
from weft.observe.runs import split_place
from weft.ports.store import RunRow
from weft.runtime.schema_check import check_schema
from weft.runtime.service import RunService
from weft.runtime.typed_words import parse_word


class TypedAnswer(msgspec.Struct, frozen=True):
    """An answer as it was typed."""

    approved: bool
    form: Sequence[str]
    reason: str
    by: str | None
    digest: str = ""


async def print_inbox(question: str | None, *, of: str | None, url: str | None, app: str | None, json: bool) -> None:
    """Print all open questions, oldest first, or one question with its details."""
    if question is not None:
        async with open_service(url, app) as service:
            await _print_one(service, await _find_question(service, question), json=json)
        return
    address = url_of(url, app)
    found: list[OpenQuestion] = []
    if store_exists(address):
        async with open_service(address) as service:
            found = [item async for item in all_open(service) if of is None or item.is_for(of)]
    found.sort(key=lambda item: item.question.since)
    if json:
        print_json({"store": address, "questions": [_question_document(item) for item in found]})
        return
    _print_all(console(), found, address)


def _print_all(out: Console, found: Sequence[OpenQuestion], address: str) -> None:
    if not found:
        out.print(f"No open questions. Store: {store_label(address)}.")
        return
    now = _now()
    rows = [
        (
            item.id,
            item.question.title,
            age_text(now - item.question.since),
            time_text(item.question.due) if item.question.due else "",
            ", ".join(item.asked),
        )
        for item in found
    ]
    print_table(out, ("ID", "QUESTION", "WAITS", "DUE", "OF"), rows)
    out.print(
        f"[dim]Store: {store_label(address)}. One of them: weft inbox ID. Answer: weft decide ID approve|reject[/dim]"
    )


async def _find_question(service: RunService, question: str) -> OpenQuestion:
    """Find an open question by its id. Raises NotFound, UsageError."""
    row, place = await _find_place(service, question)
    found = questions_at(await open_in(service, row), place)
    if found:
        _only_place(row, found)
        return found[0]
    raise NotFound(f"{row.id} has no open question {place!r}.", hint=f"weft explain {row.id} shows what it waits for.")


async def _print_one(service: RunService, item: OpenQuestion, *, json: bool) -> None:
    about = await service.values.load(bytes(item.question.about))
    if json:
        print_json({**_question_document(item), "about": msgspec.json.decode(about)})
        return
    out, question = console(), item.question
    out.print(item.id, markup=False, style="bold")
    lines = {
        "question": escape_line(question.title),
        "of": escape_line(", ".join(item.asked)) or "anybody",
        "needs": f"approvals: {question.quorum}" + (", not by the starter of the run" if question.four_eyes else ""),
        "approved by": escape_line(", ".join(question.approvals)),
        "due": f"{time_text(question.due)}, then {question.on_timeout}" if question.due else "",
        "digest": item.digest,
        "about": pretty_result(about) if about != b"null" else "",
        "form": pretty_result(msgspec.json.encode(question.form)) if question.form is not None else "",
    }
    for name, text in lines.items():
        if text:
            indented = text.replace("\n", f"\n{'':13}")
            out.print(f"{name:11}  {indented}", markup=False)


def _question_document(item: OpenQuestion) -> dict[str, Any]:
    question = item.question
    return {
        "id": item.id,
        "run": item.row.id,
        "location": item.place,
        "workflow": item.row.workflow,
        "title": question.title,
        "since": iso_time(question.since),
        "due": iso_time(question.due),
        "of": item.asked,
        "quorum": question.quorum,
        "four_eyes": question.four_eyes,
        "escalated": question.escalated,
        "approvals": question.approvals,
        "form": question.form,
        "about": recorded_document(bytes(question.about)),
        "digest": item.digest,
    }


async def answer_question(question: str, given: TypedAnswer, *, url: str | None, app: str | None) -> None:
    """Answer an open question. Raises NotFound, AlreadyDecided, BadValue."""
    async with open_service(url, app) as service:
        row, location = await _find_place(service, question)
        found = questions_at(await open_in(service, row), location)
        # If there is not exactly one question at this location, the run refuses the answer.
        asked = found[0] if len(found) == 1 else None
        schema = asked.question.form if asked is not None else None
        location = asked.place if asked is not None else location
        # With the current digest, the answer is refused if the question changes in the meantime.
        digest = given.digest or (asked.digest if asked is not None else "")
        by = _answering_as(service, given.by)
        form = read_form_option(given.form, schema) if given.form else None
        handle = run_handle(service, row)
        await handle.decide(location, approved=given.approved, by=by, reason=given.reason, form=form, digest=digest)
        done = "approved" if given.approved else "rejected"
        await print_done(service, row, f"{done} {row.id}:{location}{f' as {by}' if by else ''}", "the answer is kept")


def _answering_as(service: RunService, given: str | None) -> str:
    """Return the name under which the caller answers; empty if the API key of a server says who it is."""
    remote = getattr(service.store, "remote", None)
    if remote is None or not remote.has_key:
        return given if given is not None else login()
    if given is not None:
        say("--by is ignored: the key says who answers.")
    return ""


async def _find_place(service: RunService, question: str) -> tuple[RunRow, str]:
    """Return the run and the location of a question. If the id names only a run, it must have one open question."""
    whole = await service.store.directory.find(RunId(question))
    if whole is not None or ":" not in question:
        row = whole or await service.by_prefix(question)
        return row, _only_place(row, await open_in(service, row))
    known = await split_place(service, question)
    if known is not None:
        return known
    run, _, location = question.rpartition(":")
    return await service.by_prefix(run), location


def _only_place(row: RunRow, questions: Sequence[OpenQuestion]) -> str:
    if len(questions) == 1:
        return questions[0].place
    if not questions:
        raise NotFound(f"{row.id} has no open question.", hint=f"weft explain {row.id} shows what it waits for.")
    raise UsageError(
        f"{row.id} has {len(questions)} open questions.",
        hint=f"Name one of them: {', '.join(item.id for item in questions)}",
    )


def read_form_option(words: Sequence[str], schema: dict[str, Any] | None) -> Any:
    """Read ``--form``: one JSON value, or fields as ``KEY=VALUE`` that change the default form. Raises UsageError."""
    if len(words) == 1 and "=" not in words[0].partition('"')[0]:
        try:
            return msgspec.json.decode(words[0])
        except msgspec.DecodeError as error:
            raise UsageError(f"{words[0]!r} is neither JSON nor KEY=VALUE.", hint="--form carrier=dhl") from error
    default = (schema or {}).get("default")
    given = {key: _field(key, text, schema or {}) for key, text in split_pairs(words).items()}
    return {**default, **given} if isinstance(default, dict) else given


def _field(key: str, text: str, schema: dict[str, Any]) -> Any:
    """Read a field: as text if its schema accepts text, and otherwise as JSON."""
    definitions = schema.get("$defs", {})
    whole = definitions.get(schema.get("$ref", "").rpartition("/")[2], schema)
    field = whole.get("properties", {}).get(key)
    if isinstance(field, dict) and check_schema({**field, "$defs": definitions}, msgspec.json.encode(text)) is None:
        return text
    return parse_word(text)


def _now() -> int:
    # Imported here, because the import is slow. Opening the store needs it anyway.
    from weft.runtime.clock import SystemClock

    return SystemClock().now_ms()

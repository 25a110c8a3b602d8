"""Read the answers of workers on streams. Anybody who can reach Redis can write one, so nothing in it is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from weft.core import commands as c
from weft.core import values
from weft.core.ids import EntryId, RunUid
from weft.errors import Failure, NotFound, Unavailable, WeftError
from weft.ports.worker_streams import ENTRY_BYTES_MAX, StreamEntry
from weft.runtime.worker_streams.failures import BadAnswer
from weft.runtime.worker_streams.parts import StreamParts
from weft.runtime.worker_streams.tokens import TaskTicket
from weft.tokens import ExpiredToken, InvalidToken

METADATA_BYTES_MAX = 16 * 1024
_REF = "cas://sha256:"

Reported = c.ReportTaskSucceeded | c.ReportTaskFailed


class WorkerFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt failed, as a worker says it."""

    message: Annotated[str, Meta(max_length=20_000)]
    type: Annotated[str, Meta(min_length=1, max_length=200)] = "WorkerError"
    retryable: bool = True


class TaskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that names its task, and what it reports to the run."""

    ticket: TaskTicket
    report: Reported
    metadata: str = ""
    """JSON, for people who read the lines of the step."""
    fault: BadAnswer | None = None
    """Set if the task is known and the rest could not be read. The attempt has failed with it."""


async def read_answer(parts: StreamParts, entry: StreamEntry) -> TaskAnswer:
    """Read an answer. Raises BadAnswer if its task is not known."""
    fields = _fields_as_text(entry)
    ticket = await _open_ticket(parts, entry.stream, fields)
    try:
        _check_size(entry)
        metadata = _read_metadata(fields)
        report = await _report_of_answer(parts, ticket, fields)
    except BadAnswer as fault:
        failure = Failure(type="BadAnswer", message=fault.message, code=fault.code, attempts=ticket.attempt)
        failed = c.ReportTaskFailed(EntryId(ticket.task), ticket.attempt, ticket.delivery, failure)
        return TaskAnswer(ticket=ticket, report=failed, fault=fault)
    return TaskAnswer(ticket=ticket, report=report, metadata=metadata)


async def _report_of_answer(parts: StreamParts, ticket: TaskTicket, fields: Mapping[str, str]) -> Reported:
    task, status = EntryId(ticket.task), fields.get("status", "")
    if status == "completed":
        output = Raw(await _result_for_log(parts, ticket, fields))
        return c.ReportTaskSucceeded(task, ticket.attempt, ticket.delivery, output)
    if status == "failed":
        given = _worker_failure(fields)
        failure = Failure(type=given.type, message=given.message, code="step.failed", attempts=ticket.attempt)
        return c.ReportTaskFailed(task, ticket.attempt, ticket.delivery, failure, given.retryable)
    raise BadAnswer(f"The status of an answer is {status[:40]!r}.", hint="Send completed or failed.")


def _check_size(entry: StreamEntry) -> None:
    if entry.size > ENTRY_BYTES_MAX:
        raise BadAnswer(
            f"An answer has {entry.size:,} bytes; the limit is {ENTRY_BYTES_MAX:,}.",
            hint="Put a large result in a blob, and send its name as result_ref.",
        )


def _fields_as_text(entry: StreamEntry) -> dict[str, str]:
    """Return the fields of an answer as text."""
    found: dict[str, str] = {}
    for name, value in entry.fields.items():
        text = name.decode(errors="replace")
        try:
            found[text] = value.decode()
        except UnicodeDecodeError:
            if text == "token":
                raise BadAnswer("The token of an answer is not text.") from None
            found[text] = "\0"  # no JSON, so whoever reads it refuses it
    return found


async def _open_ticket(parts: StreamParts, stream: str, fields: Mapping[str, str]) -> TaskTicket:
    try:
        ticket = await parts.tokens.open(fields.get("token", ""), now_s=parts.clock.now_ms() // 1000)
    except InvalidToken:
        raise BadAnswer(
            "An answer has no valid token.", hint="Send the token that came with the task, unchanged."
        ) from None
    except ExpiredToken:
        raise BadAnswer("The token of an answer has expired.", hint="Answer within the timeout of the task.") from None
    if parts.names.done_of(ticket.stream) != stream or parts.names.done(ticket.tenant) != stream:
        raise BadAnswer(
            f"An answer on {stream} has a token of {ticket.stream}.",
            hint="Answer on the wf.done that has the same prefix as the stream of the task.",
        )
    return ticket


def _worker_failure(fields: Mapping[str, str]) -> WorkerFailure:
    try:
        given = msgspec.json.decode(fields.get("error", ""), type=WorkerFailure)
        values.encode([given.type, given.message], what="the error has")
    except (msgspec.DecodeError, WeftError, RecursionError) as error:
        raise BadAnswer(
            f"The error of an answer cannot be read: {error}.",
            hint='Send {"type": "CardDeclined", "message": "…", "retryable": false}.',
        ) from None
    return given


async def _result_for_log(parts: StreamParts, ticket: TaskTicket, fields: Mapping[str, str]) -> bytes:
    """Return the result for the log."""
    if "result_ref" in fields:
        return await _result_in_blob(parts, ticket, fields["result_ref"])
    try:
        decoded = msgspec.json.decode(fields.get("result", "null"))
        raw = values.encode(decoded, what="the task returned")
    except (msgspec.DecodeError, WeftError, RecursionError) as error:
        raise BadAnswer(f"The result of an answer cannot be used: {error}.", hint="Send it as JSON.") from None
    return await parts.values.keep(raw)


async def _result_in_blob(parts: StreamParts, ticket: TaskTicket, ref: str) -> bytes:
    """Return the result that is in a blob. A tenant may name only blobs that its run refers to."""
    digest = ref.removeprefix(_REF)
    if not ref.startswith(_REF) or len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise BadAnswer(f"The result_ref of an answer is {ref[:100]!r}.", hint=f"{_REF} and 64 hexadecimal digits")
    if ticket.tenant and not await parts.store.log.refers_to(RunUid(ticket.uid), digest):
        raise BadAnswer("The result_ref of an answer names a blob that its run does not have.")
    try:
        raw = await parts.store.blobs.get(digest)
        values.encode(msgspec.json.decode(raw), what="the task returned")
    except NotFound:
        raise BadAnswer("The result_ref of an answer names a blob that is not there.") from None
    except Unavailable:
        raise
    except (msgspec.DecodeError, WeftError, RecursionError) as error:
        raise BadAnswer(f"The blob of an answer cannot be used: {error}.", hint="It must be JSON.") from None
    return await parts.values.keep(raw)


def _read_metadata(fields: Mapping[str, str]) -> str:
    given = fields.get("metadata", "")
    if not given:
        return ""
    try:
        raw = values.encode(msgspec.json.decode(given), what="the metadata has")
    except (msgspec.DecodeError, WeftError, RecursionError) as error:
        raise BadAnswer(f"The metadata of an answer cannot be used: {error}.", hint="Send it as JSON.") from None
    if len(raw) > METADATA_BYTES_MAX:
        raise BadAnswer(f"The metadata of an answer has {len(raw):,} bytes; the limit is {METADATA_BYTES_MAX:,}.")
    return raw.decode()

"""Messages in a workflow: receive and answer them, and send them to other runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic

import msgspec
from msgspec import Raw
from typing_extensions import TypeVar

from weft.authoring.policies import Duration
from weft.core import commands as c
from weft.core import values
from weft.core.code.locations import check_name
from weft.core.code.state import Entry
from weft.core.durations import duration_ms, time_of
from weft.core.ids import RunId, tenant_prefix
from weft.errors import BadValue, NotFound, Refused, RunFinished, UsageError
from weft.runtime.run.driver import CodeScope, current_scope
from weft.runtime.service import RunService
from weft.steps.codec import Codec
from weft.steps.failures import rebuild_error
from weft.steps.task import task

T = TypeVar("T", default=Any)
MISSING: Any = object()


class _ReceivedMessage(msgspec.Struct):
    n: int
    id: str
    name: str
    at: int
    body: Raw = Raw(b"null")
    sender: str = ""


_decode_messages = msgspec.json.Decoder(list[_ReceivedMessage]).decode


@dataclass(frozen=True, slots=True)
class Message(Generic[T]):
    """A message that a run received."""

    id: str
    name: str
    body: T
    sent_at: datetime
    _answers: list[None] = field(default_factory=list, repr=False, compare=False)

    async def answer(self, value: Any = None) -> None:
        """Answer the message, once. A sender that used ``request`` gets this value."""
        scope = current_scope()
        if scope is None:
            raise UsageError(
                f'The message "{self.name}" was answered outside its workflow.',
                hint="Answer it in the workflow's own code.",
            )
        if self._answers:
            raise UsageError(f'The message "{self.name}" was answered twice.', hint="Answer each message once.")
        self._answers.append(None)
        place = f"answer {self.name}"
        n, entry = scope.driver.find(scope, place, "answer")
        await scope.driver.at_once(new=entry is None)
        if entry is None:
            raw = scope.driver.outside.keep(values.encode(value, what=f'the answer to "{self.name}" has'))
            scope.driver.ask(c.AnswerMessage(scope.prefix, place, n, self.id, raw))


class MessageWait(msgspec.Struct, frozen=True):
    """A wait for messages: their names, their maximum number, the timeout, and whether the workflow answers them."""

    names: list[str]
    most: int = 1
    timeout: Duration | None = None
    answer: bool = False


async def receive(scope: CodeScope, wait: MessageWait, codec: Codec[T], default: Any) -> Message[T] | Any:
    """Return the next message of the right type. A message of another type is refused, and the wait continues."""
    (name,) = wait.names
    driver = scope.driver
    due = 0
    tries = 0
    while True:
        place = name if not tries else f"{name}!{tries}"
        entry, due = await _wait_for_messages(scope, place, wait, due)
        if entry.failure is not None:
            if default is not MISSING:
                return default
            raise rebuild_error(entry.failure, run_id=driver.machine.state.run_id)
        message = _decode_messages(await driver.value(entry.output))[0]
        try:
            body = codec.decode(await driver.value(message.body), what=f'the message "{name}" has')
        except BadValue as error:
            tries += 1
            if not entry.round:
                driver.outside.issue(c.RefuseMessage(entry.id, message.id, error.message))
        else:
            return Message(message.id, message.name, body, time_of(message.at))


async def receive_several(scope: CodeScope, place: str, wait: MessageWait) -> list[Message[Any]]:
    """Return messages in order of arrival, or an empty list after the timeout."""
    entry, _ = await _wait_for_messages(scope, place, wait, 0)
    if entry.failure is not None:
        return []
    driver = scope.driver
    received = _decode_messages(await driver.value(entry.output))
    return [Message(m.id, m.name, values.decode(await driver.value(m.body)), time_of(m.at)) for m in received]


async def _wait_for_messages(scope: CodeScope, place: str, wait: MessageWait, due: int) -> tuple[Entry, int]:
    driver = scope.driver
    n, entry = driver.find(scope, place, "receive")
    if entry is None:
        if wait.timeout is not None and not due:
            due = driver.outside.now() + duration_ms(wait.timeout)
        ask = c.AwaitMessages(scope.prefix, place, n, wait.names, wait.most, due, wait.answer)
        entry = driver.ask(ask)
    await driver.outcome(entry)
    return entry, entry.due


class Refusal(msgspec.Struct):
    """Why a run did not accept a message."""

    code: str
    message: str
    hint: str

    def error(self) -> Refused:
        cls = RunFinished if self.code == RunFinished.code else NotFound
        return cls(self.message, hint=self.hint)


async def send(service: RunService, sender: str, to: str, message: tuple[str, Any]) -> Refusal | None:
    """Send a message to another run of the same tenant exactly once. This is the body of a step."""
    name, body = message
    prefix = tenant_prefix(sender)
    target = RunId(to if to.startswith(prefix) else f"{prefix}{to}")
    raw = await service.values.keep(values.encode(body, what=f'the message "{check_name(name)}" has'))
    key = task().key
    try:
        command = c.DeliverMessage(key, name, Raw(raw), sender)
        await service.retry_until_available(lambda: service.tell(target, command, key=key))
    except (NotFound, RunFinished) as error:
        return Refusal(error.code, error.message, error.hint)
    return None

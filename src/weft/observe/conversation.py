"""The conversation of an agent's run, as people read it: turns, tool calls, results, and who approved what."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from weft.agents.models.step import read_answer
from weft.agents.spec import AgentSpec, decode_spec
from weft.core import values
from weft.core.ids import RunId, Seq
from weft.errors import BadValue, Failure, NotFound
from weft.observe.history import OVER
from weft.observe.passed_models import PassedModel, passed_models
from weft.observe.place_log import PlaceLog
from weft.observe.places import PlaceChange, RunPlace
from weft.ports.models import ModelMessage, ResultPart
from weft.ports.store import RunRow
from weft.runtime.service import RunService

TURNS_PER_PAGE = 50
TEXT_CHARS_MAX = 20_000
FIRST_PLACES = 20
"""Among how many of its first places a run of an agent has recorded its spec."""
CHILDREN_LOOKED_AT = 50
CHILDREN_NAMED = 5
_SPEC = b'"of":"spec"'
"""What the event has with which the run of an agent records its spec."""
_PLACE = re.compile(r"turn/~(\d+)/(?:(model)(?:/\d+|#\d+)?|(answer)|tools/(\d+)/(.+))")

CallStatus = Literal["asked", "running", "done", "refused", "failed"]


class CallView(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of a turn."""

    place: str
    tool: str
    arguments: str
    """As the model wrote them."""
    status: CallStatus
    """``asked``: it waits for a person. ``refused``: it was not possible, not permitted, or a person said no."""
    result: str = ""
    """What the model was told, or the beginning of it."""
    approval: str = ""
    """The name of the question, for an answer to it; empty if nobody was asked."""
    approved: bool | None = None
    by: list[str] = []
    """Who answered."""
    reason: str = ""
    child: str = ""
    """The run that performed it, if it is a workflow or an agent."""


class TurnView(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model, and what it called."""

    number: int
    alias: str
    model: str
    at: int
    text: str = ""
    calls: list[CallView] = []
    finish: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    is_running: bool = False
    """The model has not answered yet."""
    passed_models: list[PassedModel] = []
    """The models that did not answer before this one was asked."""


class ConversationView(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation of a run."""

    run: str
    agent: str
    system: str
    prompt: str
    turns: list[TurnView]
    """Oldest first."""
    before: int | None
    """The number of the oldest turn of this page, if there are older ones; give it as ``before``."""
    is_over: bool
    seq: int = 0
    """The event after which it stood so."""


class AskedTurns(msgspec.Struct, frozen=True, kw_only=True):
    """Which turns are asked for: the newest, or those before a turn, as they stood after an event."""

    seq: int
    before: int | None = None
    limit: int = TURNS_PER_PAGE


async def read_conversation(service: RunService, row: RunRow, log: PlaceLog, asked: AskedTurns) -> ConversationView:
    """Read turns of an agent's run from its places. Raises NotFound if it is no run of an agent.

    Only the places from the newest to the oldest of these turns are looked at, however long the conversation is.
    """
    spec = await _spec(service, row, log, asked.seq)
    found = TurnPlaces(log, asked)
    given = values.decode(await service.values.load(log.history.input))
    turns = []
    for number in found.shown:
        turn = await _turn(service, found, number)
        passed = passed_models(spec.models, reversed(found.failed.get(number, ())))
        turns.append(msgspec.structs.replace(turn, passed_models=passed) if passed else turn)
    return ConversationView(
        run=row.id,
        agent=spec.agent,
        system=spec.system,
        prompt=_prompt(given),
        turns=turns,
        before=found.shown[0] if found.has_older else None,
        is_over=log.status_of(asked.seq) in OVER,
        seq=asked.seq,
    )


class TurnPlace(msgspec.Struct, frozen=True):
    """A place of the loop, and how it stood."""

    place: RunPlace
    standing: PlaceChange

    @property
    def location(self) -> str:
        return self.place.operation.location

    @property
    def status(self) -> str:
        return self.standing.status

    @property
    def output(self) -> bytes:
        return self.standing.output


class TurnPlaces:
    """The places of the turns of one page, by turn and by the number of the call. They are found from the newest on."""

    def __init__(self, log: PlaceLog, asked: AskedTurns) -> None:
        self.models: dict[int, TurnPlace] = {}
        self.failed: dict[int, list[tuple[str, Failure]]] = {}
        """The calls of models that failed, newest first."""
        self.calls: dict[tuple[int, int], dict[str, TurnPlace]] = {}
        self.has_older = False
        wanted: set[int] = set()
        for place in _newest_first(log, asked.seq):
            match = _PLACE.fullmatch(place.operation.location)
            standing = place.standing(asked.seq) if match is not None else None
            if match is None or standing is None:
                continue
            # The last answer comes after the calls of its turn.
            turn = int(match[1]) + (match[3] is not None)
            if asked.before is not None and turn > asked.before:
                continue
            if (asked.before is None or turn < asked.before) and turn not in wanted and (match[2] or match[3]):
                if len(wanted) == asked.limit:
                    self.has_older = True
                    break
                wanted.add(turn)
            known = TurnPlace(place, standing)
            if match[2] or match[3]:
                self.models.setdefault(turn, known)  # a fallback replaces the model that did not answer
                if standing.failure is not None:
                    self.failed.setdefault(turn, []).append((known.location, standing.failure))
            else:
                self.calls.setdefault((turn, int(match[4])), {}).setdefault(match[5], known)
        self.shown = sorted(wanted)


def _newest_first(log: PlaceLog, seq: int) -> Iterator[RunPlace]:
    places = log.places
    for index in range(log.begun(seq) - 1, -1, -1):
        yield places[index]


async def _spec(service: RunService, row: RunRow, log: PlaceLog, seq: int) -> AgentSpec:
    for place in log.places[:FIRST_PLACES]:
        operation, standing = place.operation, place.standing(seq)
        if operation.location == "spec" and operation.kind == "spec" and standing is not None:
            return decode_spec(await service.values.load(standing.output))
    below = await _agents_below(service, log, seq)
    hint = "\n".join(f"weft show {child} --conversation" for child in below) or f"weft show {row.id}"
    about = "; the agents that it asked have conversations" if below else ", or has not begun"
    raise NotFound(f"{row.id} is not a run of an agent{about}.", hint=hint)


async def _agents_below(service: RunService, log: PlaceLog, seq: int) -> list[RunId]:
    """Return the newest child runs that are runs of agents, newest first."""
    children = dict.fromkeys(place.operation.child for place in _newest_first(log, seq) if place.operation.child)
    found: list[RunId] = []
    for child in itertools.islice(map(RunId, children), CHILDREN_LOOKED_AT):
        row = await service.store.directory.find(child)
        events = await service.store.log.events(row.uid, after=Seq(0), limit=FIRST_PLACES) if row is not None else ()
        if any(_SPEC in event.body for event in events):
            found.append(child)
        if len(found) == CHILDREN_NAMED:
            break
    return found


async def _turn(service: RunService, found: TurnPlaces, number: int) -> TurnView:
    model = found.models[number]
    if model.status != "done":
        return TurnView(
            number=number, alias="", model="", at=model.place.operation.started, is_running=model.status == "open"
        )
    raw = await service.values.load(model.output)
    try:
        answer = read_answer(raw)
    except BadValue:  # people have set it
        said = raw.decode(errors="replace")[:TEXT_CHARS_MAX]
        return TurnView(number=number, alias="", model="", at=model.place.operation.started, text=said)
    told = await _told(service, found, number + 1)
    calls = []
    for place, call in enumerate(answer.calls):
        operations = found.calls.get((number, place), {})
        where = f"turn/~{number}/tools/{place}"
        result = told[place] if place < len(told) else await _preview(service, operations)
        calls.append(_call_view(where, call.name, call.arguments, operations, result))
    return TurnView(
        number=number,
        alias=answer.alias,
        model=answer.model,
        at=model.place.operation.started,
        text=answer.text[:TEXT_CHARS_MAX],
        calls=calls,
        finish=answer.finish,
        input_tokens=answer.usage.input,
        output_tokens=answer.usage.output,
    )


def _call_view(where: str, tool: str, arguments: str, operations: Mapping[str, TurnPlace], result: str) -> CallView:
    asked, work = operations.get("approve"), _operation_of_call(operations)
    decided: dict[str, Any] = values.decode(asked.output) if asked is not None and asked.status == "done" else {}
    return CallView(
        place=where,
        tool=tool,
        arguments=arguments[:TEXT_CHARS_MAX],
        status=_status(asked, work, result),
        result=result[:TEXT_CHARS_MAX],
        approval=asked.location if asked is not None else "",
        approved=decided.get("approved"),
        by=[decided["by"]] if decided.get("by") else [],
        reason=str(decided.get("reason", "")),
        child=work.place.operation.child if work is not None else "",
    )


def _operation_of_call(operations: Mapping[str, TurnPlace]) -> TurnPlace | None:
    """Return the task, child run or question that performs a call."""
    return next((one for name, one in operations.items() if name not in ("approve", "policy", "result")), None)


def _status(asked: TurnPlace | None, work: TurnPlace | None, result: str) -> CallStatus:
    if work is None:
        if asked is not None and asked.status == "open":
            return "asked"
        return "refused" if result else "running"
    if work.status == "open":
        return "asked" if work.place.operation.kind == "ask" else "running"
    return "done" if work.status == "done" else "failed"


async def _told(service: RunService, found: TurnPlaces, number: int) -> list[str]:
    """Return the results that the model was told before a turn, from the link that the turn put."""
    model = found.models.get(number)
    if model is None or model.status != "done":
        return []
    try:
        head = read_answer(await service.values.load(model.output)).head
        raw = await service.values.blob(head.removeprefix("cas://sha256:"))
    except (BadValue, NotFound):  # people have set the answer
        return []
    messages = msgspec.json.decode(raw, type=_LinkMessages).messages
    return [part.content for message in messages for part in message.parts if isinstance(part, ResultPart)]


class _LinkMessages(msgspec.Struct):
    messages: Sequence[ModelMessage]


async def _preview(service: RunService, operations: Mapping[str, TurnPlace]) -> str:
    work = _operation_of_call(operations)
    if work is None or work.status == "open":
        return ""
    if work.standing.failure is not None:
        return work.standing.failure.brief()
    return (await service.values.load(work.output)).decode(errors="replace")


def _prompt(given: Any) -> str:
    prompt = given.get("prompt", "") if isinstance(given, dict) else ""
    return prompt if isinstance(prompt, str) else values.encode(prompt).decode()

"""Wait for a run on behalf of an MCP client: tell its progress, put its questions to a person, return its result."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
from mcp_types import CallToolResult, ElicitRequest, ElicitResult, InputRequiredResult

from weft.core.ids import RunId
from weft.errors import AlreadyDecided, BadValue, NotFound, Refused
from weft.observe.explain import explain
from weft.observe.questions import OpenQuestion, open_questions_of
from weft.ports.run_query import RunQuery
from weft.ports.store import OVER_STATUSES, RunRow
from weft.runtime.runs import Ending
from weft.runtime.service import RunService
from weft.server.endpoints.approvals import decide
from weft.server.identity import AccessScope
from weft.server.mcp.exchange import McpExchange, make_tool_result
from weft.server.mcp.forms import form_fields, question_form, read_elicited_decision

WAIT_SECONDS_MAX = 20.0
LOOK_SECONDS = 1.0
"""How often a run is looked at that does not change: its children may ask something."""
CHILDREN_MAX = 50
DEPTH_MAX = 4
FORMS_MAX = 8
"""How many forms one call shows."""


class WaitState(msgspec.Struct):
    """What a client brings back when it calls again with the answers to questions. It proves nothing by itself."""

    run: str
    asked: dict[str, str] = {}
    """The digests of the questions that were shown, by their ids."""
    left: list[str] = []
    """The ids of the questions that the person did not answer."""
    forms: int = 0
    problem: str = ""


class RunWait:
    """The wait of one call for one run."""

    def __init__(self, exchange: McpExchange, row: RunRow, state: WaitState) -> None:
        self._exchange = exchange
        self._row = row
        self._state = state
        self._reported = -1

    async def wait(self, seconds: float) -> CallToolResult | InputRequiredResult:
        """Return the result of the run, a question for a person, or how the run stands when the time is over."""
        call = self._exchange.call
        seconds = min(seconds, WAIT_SECONDS_MAX, call.services.limits.wait_seconds)
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        with call.services.feed.follow(self._row.uid) as changed:
            while True:
                changed.clear()
                row = self._row = await call.service.row(RunId(self._row.id))
                if row.status in OVER_STATUSES:
                    return ended_run_result(row, await call.service.ending(row.id, timeout=seconds or 1.0))
                item = await self._next_question()
                if item is not None and self._exchange.is_modern:
                    return await self._ask_client(item)
                if item is not None:
                    await self._ask(item)
                    until = loop.time() + seconds
                    continue
                await self._report()
                left = until - loop.time()
                if left <= 0 or self._state.left or call.services.closing.is_set():
                    return make_tool_result(await open_run_standing(call.service, row))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, LOOK_SECONDS)):
                        await changed.wait()

    async def _report(self) -> None:
        if self._row.seq == self._reported or not self._exchange.wants_progress:
            return
        self._reported = self._row.seq
        explained = await explain(self._exchange.call.service, self._row)
        await self._exchange.report(self._row.seq, explained.summary)

    # --- questions ------------------------------------------------------------------------------------------------

    async def _next_question(self) -> OpenQuestion | None:
        """Return a question that this caller may answer and that its client can show, if there is one."""
        exchange = self._exchange
        identity = exchange.call.identity
        if not exchange.can_ask or not identity.may(AccessScope.DECIDE) or self._state.forms >= FORMS_MAX:
            return None
        groups = sorted(identity.groups) if identity.groups is not None else None
        for item in await questions_of_tree(exchange.call.service, self._row):
            is_new = item.id not in self._state.left
            if is_new and form_fields(item) is not None and not item.why_not(exchange.caller, groups):
                return item
        return None

    async def _ask_client(self, item: OpenQuestion) -> InputRequiredResult:
        """Return a question to the client, which calls again with the answer."""
        state = self._state
        form = await question_form(self._exchange.call, item, state.problem)
        state.asked, state.problem = {item.id: item.digest}, ""
        state.forms += 1
        return InputRequiredResult(
            input_requests={item.id: ElicitRequest(params=form)}, request_state=msgspec.json.encode(state).decode()
        )

    async def _ask(self, item: OpenQuestion) -> None:
        """Send a question to the client and wait for the answer."""
        state = self._state
        form = await question_form(self._exchange.call, item, state.problem)
        state.asked, state.problem = {item.id: item.digest}, ""
        state.forms += 1
        await self.take({item.id: await self._exchange.ask(form)})

    async def take(self, answers: dict[str, Any]) -> None:
        """Take the answers that a person gave. One that is not accepted is asked for again."""
        state, call = self._state, self._exchange.call
        shown, state.asked = state.asked, {}
        for item in await questions_of_tree(call.service, self._row) if shown else ():
            given = answers.get(item.id)
            if item.id not in shown or not isinstance(given, ElicitResult):
                continue
            decision = read_elicited_decision(given, item, self._exchange.caller, shown[item.id])
            if decision is None:
                state.left.append(item.id)
                continue
            try:
                await decide(self._exchange.about(item.id, body=decision))
            except (AlreadyDecided, NotFound):
                continue
            except BadValue as error:
                state.problem = error.message
            except Refused:
                state.left.append(item.id)


async def questions_of_tree(service: RunService, row: RunRow) -> list[OpenQuestion]:
    """Return the open questions of a run and of the runs that it started."""
    found: list[OpenQuestion] = []
    level = [row]
    for _ in range(DEPTH_MAX):
        below: list[RunRow] = []
        for one in level:
            found += await open_questions_of(service, one)
            page = await service.search(RunQuery(parent=one.uid, internal=True, limit=CHILDREN_MAX))
            below += [child for child in page.rows if child.status not in OVER_STATUSES]
        level = below[:CHILDREN_MAX]
        if not level:
            break
    return found


async def open_run_standing(service: RunService, row: RunRow) -> dict[str, Any]:
    """Return how an open run stands: its status, what it waits for, and what it asks people."""
    explained = await explain(service, row)
    found: dict[str, Any] = {"run_id": row.id, "status": row.status, "summary": explained.summary}
    questions = shown_questions(await questions_of_tree(service, row))
    return {**found, "questions": questions} if questions else found


def shown_questions(questions: Sequence[OpenQuestion]) -> list[dict[str, Any]]:
    """Return what questions ask, and whom."""
    return [{"id": item.id, "title": item.question.title, "of": item.asked} for item in questions]


def ended_run_result(row: RunRow, ending: Ending) -> CallToolResult:
    """Return how a run ended, as the result of a tool."""
    found: dict[str, Any] = {"run_id": row.id, "status": ending.status}
    if ending.status == "completed":
        return make_tool_result({**found, "result": msgspec.Raw(ending.output)})
    if ending.failure is not None:
        failure = ending.failure
        found["error"] = {"type": failure.type, "message": failure.message, "code": failure.code}
    elif ending.reason:
        found["summary"] = ending.reason
    return make_tool_result(found, is_error=True)

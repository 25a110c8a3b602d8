"""Questions of MCP servers: a tool that needs to know something asks a person, and is called again with the answer."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.agents.mcp.definitions import QUESTION
from weft.agents.spec import AgentSpec
from weft.authoring.agents.approval import WantedCall
from weft.authoring.agents.operations import QuestionOrder, ask_people
from weft.errors import BadValue

ROUNDS_MAX = 5
"""How often one call may ask."""
TIMEOUT_MS = 86_400_000
_BEGIN = b'{"' + QUESTION.encode() + b'"'


class _ServerForm(msgspec.Struct):
    message: str
    schema: dict[str, Any]


class _ServerQuestion(msgspec.Struct):
    forms: dict[str, _ServerForm] = msgspec.field(name=QUESTION)
    state: str | None = None


async def answer_server(spec: AgentSpec, wanted: WantedCall, raw: bytes) -> WantedCall | None:
    """Ask people what a tool of an MCP server asks. Returns the call that goes on; None if the tool asked nothing.

    Whoever approves calls of the agent is asked. What the server says is shown as its own words.
    """
    if not raw.startswith(_BEGIN):
        return None
    given, tool = wanted.tool.given, wanted.tool
    rounds = given.get("rounds", 0) + 1
    if rounds > ROUNDS_MAX:
        raise BadValue(f"{tool.name} has asked {ROUNDS_MAX} times in one call.", code="tool.failed")
    question = msgspec.json.decode(raw, type=_ServerQuestion)
    answers = {key: await _ask_for_server(spec, wanted, form) for key, form in question.forms.items()}
    more = {**given, "answers": answers, "state": question.state, "rounds": rounds}
    return msgspec.structs.replace(wanted, tool=msgspec.structs.replace(tool, given=more))


async def _ask_for_server(spec: AgentSpec, wanted: WantedCall, form: _ServerForm) -> dict[str, Any]:
    server = wanted.tool.given.get("server", "")
    answer = await ask_people(
        QuestionOrder(
            place="question",
            title=f"The MCP server {server} asks, for {wanted.tool.name}",
            about={
                "agent": spec.agent,
                "tool": wanted.tool.name,
                "arguments": wanted.arguments,
                "server_says": form.message,
            },
            form=form.schema,
            of=spec.approvers,
            timeout_ms=TIMEOUT_MS,
        )
    )
    if answer.approved and isinstance(answer.form, dict):
        return {"action": "accept", "content": answer.form}
    return {"action": "decline"}

"""What an MCP server asks people, which may be anything."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import InputRequiredResult

from weft.agents.mcp.failures import ToolFailed
from weft.agents.mcp.results import question_of


def asking_with(schema: dict[str, Any]) -> InputRequiredResult:
    params = {"mode": "form", "message": "Which city?", "requestedSchema": schema}
    requests = {"city": {"method": "elicitation/create", "params": params}}
    return InputRequiredResult.model_validate({"inputRequests": requests, "requestState": "s"})


@pytest.mark.parametrize(
    "city",
    [{"type": "nonsense"}, {"pattern": "(unclosed"}, {"pattern": "(?=(a+)+$)b"}, {"$ref": "https://x.example/schema"}],
    ids=str,
)
def test_a_form_that_no_answer_can_be_checked_with_is_asked_to_nobody(city: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"city": city}}

    with pytest.raises(ToolFailed, match="asks with a form that cannot be shown: its schema is not valid"):
        question_of("box", "ask", asking_with(schema))


def test_a_form_is_shown_as_the_server_has_it() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

    asked = question_of("box", "ask", asking_with(schema))

    assert asked == {"weft.question": {"city": {"message": "Which city?", "schema": schema}}, "state": "s"}

"""The values that a run holds: its input, state or facts, open work, loops, messages, attributes and output."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from weft.core import values
from weft.core.machine import Machine
from weft.observe.style_views import Held, SectionName
from weft.observe.styles import views_of

TITLES: Mapping[SectionName, str] = {
    "input": "Input",
    "state": "State",
    "facts": "Facts",
    "open": "Open work",
    "loops": "Loops",
    "messages": "Messages that nobody has taken",
    "attributes": "Attributes",
    "schedule": "Schedule",
    "output": "Output",
}
_fields: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
_encode = msgspec.json.Encoder().encode


def held_values(machine: Machine) -> Held:
    """Return what a run holds as it stands in ``machine``. Sections without values are left out."""
    state = machine.state
    found: dict[SectionName, Mapping[str, bytes]] = {
        "input": _by_field(bytes(state.input)),
        **views_of(machine.style.name).held(machine),
        "open": _open_work(machine),
        "messages": {
            f"{name} {message.n}": bytes(message.body) for name in state.messages for message in state.messages[name]
        },
        "attributes": {name: _encode(value) for name, value in state.attributes.items()},
    }
    if state.status == "completed":
        found["output"] = {"": bytes(state.output)}
    return {name: section for name, section in found.items() if section}


def _by_field(raw: bytes) -> Mapping[str, bytes]:
    """Return the fields of an input, or all of it under the name "" if it is a reference or no object."""
    if not raw.startswith(b"{") or raw.startswith(values.MARKED):
        return {"": raw}
    return {name: bytes(value) for name, value in _fields.decode(raw).items()}


def _open_work(machine: Machine) -> Mapping[str, bytes]:
    """Return the inputs of open tasks and what is asked, by location."""
    state = machine.state
    work = {machine.location(number): bytes(task.input) for number, task in {**state.tasks, **state.parked}.items()}
    asked = {machine.location(number): bytes(question.about) for number, question in state.questions.items()}
    return {**work, **asked}

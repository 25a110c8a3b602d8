"""The steps of apps, in the store: every host publishes those that its app registers, so that others can plan with
them.

The steps of a host are one definition, named by its content. The host's description names that version. Processes
without a host thus know what is registered now: these steps, and those in the store's own catalogue.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core import values
from weft.core.goal.definitions import StepDef
from weft.core.ids import Millis
from weft.errors import Refused
from weft.ports.clock import Clock
from weft.ports.definitions import Definition, Definitions
from weft.ports.hosts import Hosts
from weft.runtime.catalogue_log import StoredCatalogue

HOST_STEPS = "weft.steps"
STYLE = "steps"

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[list[StepDef]] = msgspec.json.Decoder(list[StepDef])


def steps_version(steps: Sequence[StepDef]) -> str:
    """Return the version of the steps of a host. Empty if it has none."""
    return values.digest(_encode_steps(steps)) if steps else ""


def _encode_steps(steps: Sequence[StepDef]) -> bytes:
    return _encode(sorted(steps, key=lambda step: step.id))


async def publish_steps(definitions: Definitions, steps: Sequence[StepDef], now: Millis) -> None:
    """Store the steps of a host, unless it has none."""
    if steps:
        version, body = steps_version(steps), _encode_steps(steps)
        await definitions.put(Definition(name=HOST_STEPS, version=version, style=STYLE, body=body, created_at=now))


async def registered_now(definitions: Definitions, hosts: Hosts | None, clock: Clock) -> list[StepDef]:
    """Return the steps that goals are planned with now: those of the living hosts, and those in the store.

    Raises Refused if no host is alive, or none can be seen, or if the hosts do not agree.
    """
    found = await steps_of_hosts(definitions, hosts)
    if found is None:
        raise Refused(
            "It is not known which steps are registered: no process hosts the store now.",
            hint="Start a process that hosts the app, or use its server.",
        )
    stored = (await StoredCatalogue(definitions, clock).catalogue()).entries
    return list({**{step: entry.definition for step, entry in stored.items()}, **found}.values())


async def steps_of_hosts(definitions: Definitions, hosts: Hosts | None) -> dict[str, StepDef] | None:
    """Return the steps that the apps of the living hosts register; None if no host is alive, or none can be seen.

    Raises Refused if the hosts do not agree.
    """
    living = [host for host in await hosts.list_all() if not host.gone] if hosts is not None else []
    if not living:
        return None
    found: dict[str, StepDef] = {}
    for version in sorted({str(host.about["planned_steps"]) for host in living if host.about.get("planned_steps")}):
        for step in await _read_host_steps(definitions, version):
            if found.setdefault(step.id, step) != step:
                raise Refused(
                    f"It is not known which {step.id} is meant: the hosts of the store register different ones.",
                    hint="Wait until all of them have the same code, or use the server of one of them.",
                )
    return found


async def _read_host_steps(definitions: Definitions, version: str) -> list[StepDef]:
    definition = await definitions.get(HOST_STEPS, version)
    if definition is None:
        raise Refused("A host has not published its steps yet: it is starting.", hint="Try again.")
    return _decoder.decode(definition.body)

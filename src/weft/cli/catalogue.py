"""Print and change the catalogue: the steps that goals are planned with, and their health."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from weft.cli.app_file import load_app
from weft.cli.messages import say
from weft.cli.operations import remote_of
from weft.cli.output import SafeText, console, print_json, print_table
from weft.cli.plan import WITHOUT_APP, KnownSteps, known_steps, with_steps_of_hosts
from weft.cli.store_access import open_service, store_label, url_of
from weft.core.goal.catalogue import AnyCatalogueEvent, Checkup, StepRegistered, StepUnregistered, StepUpdated
from weft.core.goal.definitions import StepDef
from weft.core.goal.plan_text import way_text
from weft.documents.text import UnreadableText, read_text
from weft.errors import UsageError
from weft.goals import load_steps
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.runtime.service import RunService
from weft.runtime.step_keeper import can_be_checked, check_scripts
from weft.settings import project_text

if TYPE_CHECKING:
    from weft.authoring.registrations import Registrations
    from weft.authoring.remote import Remote

HEALTH_STYLES = {"healthy": "green", "unhealthy": "red", "unknown": "dim"}
WORDS = {StepRegistered: "registered", StepUpdated: "updated", StepUnregistered: "unregistered"}


async def print_steps(*, url: str | None, app: str | None, json: bool) -> None:
    """Print all steps that goals are planned with, sorted by id."""
    async with known_steps(url, app, "weft steps") as before:
        stored = None
        known = await with_steps_of_hosts(before)
        if known.service is not None:
            stored = await StoredCatalogue(known.service.store.definitions, known.service.clock).catalogue()
        steps = sorted(known.group.registered.planned(), key=lambda step: step.id)
        health = {step.id: _health(step, stored.health if stored is not None else {}) for step in steps}
        origins = dict.fromkeys((step.id for step in steps), "app")
        origins |= dict.fromkeys(known.of_hosts, "hosts")
        origins |= {step.id: "store" for step in steps if stored is not None and step.id in stored}
    if json:
        print_json({"store": known.address, "steps": [_step_document(step, health, origins) for step in steps]})
        return
    _print_steps(steps, health, origins, known)


def _health(step: StepDef, known: dict[str, Checkup]) -> Checkup:
    """Return the last known health of a step. If there is none, its scripts are checked now."""
    found = known.get(step.id)
    if found is not None:
        return found
    return check_scripts(step) if can_be_checked(step) and any(True for _ in step.scripts()) else Checkup()


def _print_steps(
    steps: Sequence[StepDef], health: dict[str, Checkup], origins: dict[str, str], known: KnownSteps
) -> None:
    out = console()
    if not steps:
        out.print(f"No steps. Store: {store_label(known.address)}. Add some: weft steps register FILE, or --app FILE")
        return
    rows = [
        (
            step.id,
            SafeText(health[step.id].status, style=HEALTH_STYLES[health[step.id].status]),
            origins[step.id],
            ", ".join(sorted(step.gives)),
            ", ".join(fact for fact, need in sorted(step.needs.items()) if need.role != "const"),
            f"{way_text(step)}{f'  ({health[step.id].error})' if health[step.id].error else ''}",
        )
        for step in steps
    ]
    print_table(out, ("STEP", "HEALTH", "FROM", "GIVES", "NEEDS", "HOW"), rows)
    without = "" if known.has_app else f" {WITHOUT_APP}"
    out.print(f"[dim]Store: {store_label(known.address)}.{without}[/dim]")


def _step_document(step: StepDef, health: dict[str, Checkup], origins: dict[str, str]) -> dict[str, Any]:
    found = health[step.id]
    body = msgspec.to_builtins(step)
    return {**body, "health": found.status, "error": found.error or None, "from": origins[step.id]}


async def change_steps(action: str, words: Sequence[str], *, url: str | None, app: str | None) -> None:
    """Register or update the steps of files in the store, or unregister steps.

    Raises BadStep, NameTaken, UnknownStep.
    """
    target = app or project_text("app")
    loaded = load_app(target, "weft steps") if target else None
    # A step without policies in the document gets those of its function.
    steps = loaded.app.registered if loaded is not None else None
    async with open_service(url_of(url, app, loaded), create=action == "register") as service:
        remote = remote_of(service)
        if remote is not None:
            changed = await _change_through(remote, action, words)
        else:
            changed = await _change_here(service, action, words, steps)
    for word, step in changed:
        say(f"{word} {step}")
    if not changed:
        say(f"nothing to do: {store_label(service.store.url)} already has these steps")


async def _change_here(
    service: RunService, action: str, words: Sequence[str], steps: Registrations | None
) -> list[tuple[str, str]]:
    """Change the catalogue in the store. Returns what happened to which step."""
    stored = StoredCatalogue(service.store.definitions, service.clock)
    events: list[AnyCatalogueEvent] = []
    if action == "unregister":
        events += await stored.unregister(*words)
    else:
        change = stored.register if action == "register" else stored.update
        for file in words:
            events += await change(load_steps(file, GOAL_LANGUAGES, steps))
    return [
        (
            WORDS.get(type(event), "changed"),
            event.step.id if isinstance(event, StepRegistered | StepUpdated) else event.step_id,
        )
        for event in events
    ]


async def _change_through(remote: Remote, action: str, words: Sequence[str]) -> list[tuple[str, str]]:
    """Change the catalogue of a server. Returns what happened to which step."""
    from weft.authoring.remote_operations import RemoteInstallationOperations

    installation = RemoteInstallationOperations(remote)
    changed: list[str] = []
    for word in words:
        if action == "unregister":
            changed += await installation.remove_step(word)
        else:
            changed += await installation.change_steps(action, _document_in(word))
    done = {"register": "registered", "update": "updated", "unregister": "unregistered"}[action]
    return [(done, step) for step in changed]


def _document_in(file: str) -> dict[str, Any]:
    """Return the content of a file of steps, which the server checks. Raises UsageError."""
    try:
        data = read_text(Path(file).read_text("utf-8-sig")).data
    except (OSError, UnicodeDecodeError, UnreadableText) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from None
    if not isinstance(data, dict):
        raise UsageError(f"{file} has no steps.", hint="It is a mapping with weft: steps/1 and steps.")
    return data

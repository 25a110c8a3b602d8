"""Print the plan for goals as a tree with reasons or as a picture, or freeze it into a graph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from weft.authoring.app import App
from weft.authoring.goals import Plan
from weft.authoring.group import Group
from weft.authoring.registrar import Registrar
from weft.cli.app_file import LoadedApp, load_app
from weft.cli.messages import say
from weft.cli.operations import remote_of
from weft.cli.output import SafeText, age_text, console, iso_time, lines, print_json, with_full_stop
from weft.cli.store_access import open_service, store_exists, store_label, url_of
from weft.core.plurals import pluralize
from weft.errors import UnknownStep, UsageError
from weft.observe.pictures import picture_of_plan, render_mermaid, render_svg
from weft.ports.memos import Memo
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.host_steps import steps_of_hosts
from weft.runtime.memo_lookup import find_reusable
from weft.runtime.offered_versions import check_graph_name
from weft.runtime.programs import StoredGraph, graph_definition, store_definition
from weft.runtime.service import RunService
from weft.runtime.typed_words import parse_word
from weft.settings import project_text

WITHOUT_APP = "To include the steps of an app, add --app FILE"


class KnownSteps(msgspec.Struct, frozen=True):
    """The steps that a command can use: those of the app and of the store, as far as there are any."""

    group: Registrar
    service: RunService | None
    address: str
    of_hosts: Collection[str] = ()
    """Those that only the apps of running hosts register."""

    @property
    def has_app(self) -> bool:
        """Whether an app is named. Without one, the steps in the store and of running hosts are known."""
        return isinstance(self.group, App)


@asynccontextmanager
async def known_steps(
    url: str | None, app: str | None, command: str, *, create: bool = False
) -> AsyncIterator[KnownSteps]:
    """Return the steps of the app and of the store, as a host would know them. Raises NameTaken, BadStep."""
    target = app or project_text("app")
    loaded: LoadedApp | None = load_app(target, command) if target else None
    address = url_of(url, app, loaded)
    group: Registrar = loaded.app if loaded is not None else Group()
    if address.startswith("memory:") or (not create and not store_exists(address)):
        yield KnownSteps(group, None, address)
        return
    async with open_service(address, create=create) as service:
        stored = await StoredCatalogue(service.store.definitions, service.clock).catalogue()
        for fault in group.registered.learn_steps({step: entry.definition for step, entry in stored.entries.items()}):
            raise fault
        yield KnownSteps(group, service, address)


async def with_steps_of_hosts(known: KnownSteps) -> KnownSteps:
    """Add the steps that the apps of running hosts register, unless an app is named. Raises Refused, BadStep."""
    if known.has_app or known.service is None:
        return known
    store = known.service.store
    found = await steps_of_hosts(store.definitions, getattr(store, "hosts", None)) or {}
    stored = {step.id: step for step in known.group.registered.planned()}
    for fault in known.group.registered.learn_steps({**found, **stored}):
        raise fault
    return msgspec.structs.replace(known, of_hosts=found.keys() - stored.keys())


def given_facts(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Read ``--given``: ``k=v`` is a fact with its value, ``k`` a fact whose value is not known yet.

    Returns all names, and the values that are known.
    """
    values: dict[str, Any] = {}
    names: dict[str, None] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not name:
            raise UsageError(f"{word!r} names no fact.", hint="Write --given order_id=o-1, or --given order_id.")
        names[name] = None
        if equals:
            values[name] = parse_word(text)
    return list(names), values


class PlanFormat(msgspec.Struct, frozen=True):
    """The output format of ``weft plan``."""

    json: bool = False
    svg: bool = False
    mermaid: bool = False
    freeze: str | None = None


async def print_plan(
    goals: Sequence[str], given: Sequence[str], plan_format: PlanFormat, *, url: str | None, app: str | None
) -> int:
    """Print the plan for these goals. Returns 1 if facts are missing. Raises UnknownStep, BadPlan."""
    names, values = given_facts(given)
    async with known_steps(url, app, "weft plan", create=plan_format.freeze is not None) as before:
        known = await with_steps_of_hosts(before)
        plan = _planned(known, goals, names)
        if plan_format.freeze is not None:
            await _freeze(plan, plan_format.freeze, known, names)
            return 0
        reuse: dict[str, Memo] = {}
        if known.service is not None:
            reuse = await find_reusable(plan.plan, values, known.service.store.memos, now=known.service.clock.now_ms())
        if plan_format.svg or plan_format.mermaid:
            picture = picture_of_plan(plan.plan)
            print(render_svg(picture) if plan_format.svg else render_mermaid(picture))
        elif plan_format.json:
            print_json({"store": known.address, **_plan_document(plan, reuse)})
        else:
            _print_plan(plan, reuse, known)
    return 1 if plan.required else 0


def _planned(known: KnownSteps, goals: Sequence[str], given: Sequence[str]) -> Plan:
    try:
        return known.group.plan(*goals, given=given)
    except UnknownStep as error:
        if known.has_app:
            raise
        raise UnknownStep(error.message, hint=f"{with_full_stop(error.hint)} {WITHOUT_APP}") from error


def _print_plan(plan: Plan, reuse: dict[str, Memo], known: KnownSteps) -> None:
    out = console()
    out.print(lines(str(plan)))
    if reuse and known.service is not None:
        now = known.service.clock.now_ms()
        out.print()
        out.print(SafeText("answered from the cache:", style="dim"))
        for step, memo in reuse.items():
            out.print(SafeText(f"  {step}: as in {memo.run}, {age_text(now - memo.at)} ago"))
    out.print(lines(f"\nSteps of {_origin(known)}", style="dim"))


def _origin(known: KnownSteps) -> str:
    if not known.has_app:
        hosts = " and of its running hosts" if known.of_hosts else ""
        return f"store {store_label(known.address)}{hosts}. {WITHOUT_APP}"
    if known.service is None:
        return "the app only: there is no store yet."
    return f"the app and of store {store_label(known.address)}."


def _plan_document(plan: Plan, reuse: dict[str, Memo]) -> dict[str, Any]:
    body = msgspec.to_builtins(plan.plan)
    for name in ("steps", "required", "conditional", "missing", "excluded", "facts", "given"):
        body.setdefault(name, [] if name in ("required", "conditional", "given") else {})
    body["reuse"] = {step: {"run": memo.run, "at": iso_time(memo.at)} for step, memo in reuse.items()}
    return dict(body)


async def _freeze(plan: Plan, name: str, known: KnownSteps, given: Sequence[str]) -> None:
    """Store the plan as a graph, which every process that has its steps can host."""
    if known.service is None:
        raise UsageError(
            f"{known.address} is not durable, so no graph can be stored in it.", hint="Name a store: --url"
        )
    remote = remote_of(known.service)
    if remote is not None:
        from weft.authoring.remote_operations import RemoteInstallationOperations

        frozen = await RemoteInstallationOperations(remote).freeze(plan.goals, given, name)
        say(f"{name} is stored as a graph, version {frozen.version}: {pluralize(frozen.nodes, 'node')}")
        return
    registered = known.group.registered.newest(name)
    await check_graph_name(known.service, name, style=registered.style if registered is not None else "")
    loaded = plan.freeze(name).load()
    definition = graph_definition(StoredGraph(loaded.source, loaded.graph), now=known.service.clock.now_ms())
    await store_definition(known.service.store.definitions, definition)
    say(f"{name} is stored as a graph, version {definition.version}: {pluralize(len(loaded.graph.nodes), 'node')}")

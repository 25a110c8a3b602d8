"""List language models with where they are and until when they are held, and ask them whether they answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import typer

from weft.agents.models.aliases import ModelAlias, ModelAliases
from weft.agents.models.ports import ModelPorts
from weft.cli.app_file import load_app
from weft.cli.output import console, iso_time, print_json, print_table
from weft.cli.store_access import open_service, store_exists, store_label, url_of
from weft.errors import UsageError, WeftError
from weft.observe.models import ModelView, model_view, read_models
from weft.ports.models import ModelMessage, ModelRequest, TextPart
from weft.runtime.clock import SystemClock
from weft.settings import project_text

PING = "Answer with the word: ok"
PING_TOKENS = 256
"""Enough for a model that thinks before it answers."""


class Pong(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a ping."""

    name: str
    ok: bool
    seconds: float
    model: str = ""
    input: int = 0
    output: int = 0
    code: str = ""
    error: str = ""


async def act_on_models(words: Sequence[str], *, url: str | None, app: str | None, json: bool) -> None:
    """Do what the words say. Raises UsageError."""
    verb, names = (words[0], words[1:]) if words else ("list", [])
    if verb == "ping":
        await _ping(_aliases(app), names, json=json)
    elif verb == "list" and not names:
        await _list(url, app, json=json)
    else:
        raise UsageError(f'"weft models {" ".join(words)}" is no command.', hint="Use weft models or weft models ping.")


def _aliases(app: str | None) -> ModelAliases | None:
    target = app or project_text("app")
    return load_app(target, "weft models").app.registered.models.aliases if target else None


async def _list(url: str | None, app: str | None, *, json: bool) -> None:
    aliases = _aliases(app)
    own = aliases.all() if aliases is not None else []
    address = url_of(url, app)
    if address.startswith("memory:") or not store_exists(address):
        found = [model_view(alias) for alias in own]
    else:
        async with open_service(address) as service:
            found = await read_models(service.store.hosts, service.store.memos, service.clock.now_ms(), own)
    if json:
        print_json({"models": [_model_document(view) for view in found]})
        return
    if not found:
        console().print(
            f'No model is declared. Declare one with app.model("fast", url=…), or name the app: --app FILE. '
            f"Store: {store_label(address)}."
        )
        return
    print_table(
        console(), ("MODEL", "IS", "AT", "API", "PER MILLION", "FALLBACK", "HOSTS", ""), map(_model_line, found)
    )


def _model_line(view: ModelView) -> tuple[str, ...]:
    prices = view.prices
    price = "" if prices is None else f"{prices['input']} / {prices['output']} {prices['currency']}"
    held = f"held until {iso_time(view.held_until)}" if view.held_until is not None else ""
    return view.name, view.model, view.url, view.api, price, ", ".join(view.fallback), str(view.hosts), held


def _model_document(view: ModelView) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(view)
    return document | {"held_until": iso_time(view.held_until) if view.held_until is not None else None}


async def _ping(aliases: ModelAliases | None, names: Sequence[str], *, json: bool) -> None:
    if aliases is None:
        raise UsageError("No app is named, so there is no model to ask.", hint="Add --app FILE.")
    asked = [aliases.get(name) for name in names] or aliases.all()
    ports = ModelPorts(aliases, SystemClock(), _no_blobs)
    try:
        pongs = [await _ping_model(ports, alias) for alias in asked]
    finally:
        await ports.close()
    if json:
        print_json({"models": [msgspec.to_builtins(pong) for pong in pongs]})
    else:
        lines = [(one.name, "ok" if one.ok else one.code, f"{one.seconds:.1f} s", _said(one)) for one in pongs]
        print_table(console(), ("MODEL", "ANSWER", "TIME", ""), lines)
    if not all(pong.ok for pong in pongs):
        raise typer.Exit(1)


async def _ping_model(ports: ModelPorts, alias: ModelAlias) -> Pong:
    message = ModelMessage(role="user", parts=(TextPart(PING),))
    request = ModelRequest(messages=(message,), output_tokens=min(PING_TOKENS, alias.output))
    begin = time.monotonic()
    try:
        reply = await ports.port(alias.name).complete(request, lambda _: None)
    except WeftError as error:
        return Pong(name=alias.name, ok=False, seconds=time.monotonic() - begin, code=error.code, error=str(error))
    usage = reply.usage
    return Pong(
        name=alias.name,
        ok=True,
        seconds=time.monotonic() - begin,
        model=reply.model,
        input=usage.input,
        output=usage.output,
    )


def _said(pong: Pong) -> str:
    return f"{pong.model}, {pong.input} tokens in, {pong.output} out" if pong.ok else pong.error


async def _no_blobs(_digest: str) -> bytes:
    raise UsageError("A ping has no images.")

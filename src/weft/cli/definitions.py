"""List and tag the versions of graphs in a store."""

from __future__ import annotations

from weft.cli.messages import say
from weft.cli.output import console, iso, moment, print_json, print_table
from weft.cli.place import described, opened, url_of
from weft.errors import UsageError
from weft.observe.definitions import stored_workflows
from weft.stores import shown_url


async def print_definitions(name: str | None, *, url: str | None, app: str | None, json: bool) -> None:
    """Print all versions, by name and then oldest first."""
    address = url_of(url, app)
    async with opened(address) as service:
        definitions = await stored_workflows(service.store.definitions, name)
    if json:
        listed = [
            {"name": one.name, "version": one.version, "style": one.style, "created_at": iso(one.created_at)}
            for one in definitions
        ]
        print_json({"store": shown_url(address), "workflows": listed})
        return
    out = console()
    if not definitions:
        out.print(f"No stored workflows. Store: {described(address)}. A graph is stored when a process hosts it.")
        return
    rows = [(one.name, one.version, one.style, moment(one.created_at)) for one in definitions]
    print_table(out, ("workflow", "version", "style", "since"), rows)


async def tag_definition(name: str | None, tag: str, *, url: str | None, app: str | None) -> None:
    """Point a tag at a version. Raises UsageError, NotFound."""
    word, equals, version = tag.partition("=")
    if name is None or not equals or not word or not version:
        raise UsageError("Say which: weft workflows NAME --tag TAG=VERSION.")
    async with opened(url_of(url, app)) as service:
        await service.store.definitions.tag(name, word, version)
    say(f"{name} {word} now points at {version}")

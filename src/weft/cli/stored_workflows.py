"""List and tag the versions of graphs in a store."""

from __future__ import annotations

from weft.cli.messages import say
from weft.cli.output import console, iso, moment, print_json, print_table
from weft.cli.store_access import open_service, store_label, url_of
from weft.errors import UsageError
from weft.observe.stored_workflows import stored_workflows
from weft.stores import shown_url


async def print_stored_workflows(name: str | None, *, url: str | None, app: str | None, json: bool) -> None:
    """Print all stored versions, or those of one workflow, sorted by name and age."""
    address = url_of(url, app)
    async with open_service(address) as service:
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
        out.print(f"No stored workflows. Store: {store_label(address)}. A graph is stored when a process hosts it.")
        return
    rows = [(one.name, one.version, one.style, moment(one.created_at)) for one in definitions]
    print_table(out, ("workflow", "version", "style", "since"), rows)


async def tag_workflow(name: str | None, tag: str, *, url: str | None, app: str | None) -> None:
    """Point a tag at a version. Raises UsageError, NotFound."""
    word, equals, version = tag.partition("=")
    if name is None or not equals or not word or not version:
        raise UsageError("A tag needs a workflow and a version.", hint="weft workflows NAME --tag TAG=VERSION")
    async with open_service(url_of(url, app)) as service:
        await service.store.definitions.tag(name, word, version)
    say(f"{name} {word} now points at {version}")

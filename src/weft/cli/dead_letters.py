"""List, requeue and discard dead letters: work that failed for good and whose failure no edge of its graph handled."""

from __future__ import annotations

from weft.cli.messages import say
from weft.cli.operations import run_operations
from weft.cli.output import (
    SafeText,
    console,
    failure_text,
    iso_time,
    print_json,
    print_table,
    recorded_document,
    time_text,
    value_text,
)
from weft.cli.store_access import open_run, open_service, store_label, url_of
from weft.errors import UsageError
from weft.observe.dead_letters import all_dead_letters
from weft.stores import url_without_password


async def print_dead_letters(run: str | None, *, url: str | None, app: str | None, json: bool) -> None:
    """Print all dead letters, or those of runs whose ids begin with ``run``."""
    address = url_of(url, app)
    async with open_service(address) as service:
        letters = [item async for item in all_dead_letters(service, run)]
        if json:
            listed = [
                {
                    "id": item.id,
                    "run": item.row.id,
                    "workflow": item.row.workflow,
                    "node": item.letter.node,
                    "at": iso_time(item.letter.at),
                    "input": recorded_document(bytes(item.letter.input)),
                    "error": {"type": item.letter.failure.type, "message": item.letter.failure.message},
                    "attempts": item.letter.failure.attempts,
                }
                for item in letters
            ]
            print_json({"store": url_without_password(address), "letters": listed})
            return
        out = console()
        if not letters:
            out.print(f"No dead letters. Store: {store_label(address)}.")
            return
        rows = [
            (
                item.id,
                item.letter.node,
                time_text(item.letter.at),
                value_text(bytes(item.letter.input)),
                failure_text(item.letter.failure),
            )
            for item in letters
        ]
        print_table(out, ("id", "node", "since", "input", "error"), rows)
        out.print(SafeText(f"Store: {store_label(address)}. weft dlq requeue ID · weft dlq discard ID", style="dim"))


async def change_dead_letter(action: str, letter: str, *, url: str | None, app: str | None) -> None:
    """Requeue or discard a dead letter."""
    run, colon, token = letter.rpartition(":")
    if not colon:
        raise UsageError(f"{letter!r} is not the id of a dead letter.", hint="Its id is RUN:TOKEN: weft dlq list")
    async with open_run(run, url, app) as (service, row):
        await run_operations(service).change_letter(row.id, token, action)
        say(f"the dead letter of {row.id} is {'requeued' if action == 'requeue' else 'discarded'}")

"""Fork a run from the command line."""

from __future__ import annotations

from typing import Any

from weft.cli.arguments import split_pairs
from weft.cli.login import login
from weft.cli.messages import say
from weft.cli.operations import remote_of, run_operations
from weft.cli.output import print_json
from weft.cli.patches import declared_code
from weft.cli.store_access import open_run
from weft.runtime.fork_order import ForkOrder, check_order
from weft.runtime.programs import is_published
from weft.runtime.typed_words import parse_word


def read_order(*, at: str | None, visit: str | None, **typed: Any) -> ForkOrder:
    """Return the order that was typed. Raises UsageError."""
    typed["input"] = split_pairs(typed["input"] or ())
    typed["words"] = list(typed["input"])
    for name in ("set", "state", "given"):
        typed[name] = {key: parse_word(text) for key, text in split_pairs(typed[name] or ()).items()}
    for name in ("before", "after", "to"):
        typed[name] = typed[name] or ""
    typed["approved"] = typed["approved"] or ()
    order = ForkOrder(at=None if at is None else int(at), visit=None if visit is None else int(visit), **typed)
    check_order(order)
    return order


async def fork_run(run: str, order: ForkOrder, *, url: str | None, app: str | None, json: bool) -> None:
    """Fork a run, and print the id of the fork."""
    async with open_run(run, url, app) as (service, row):
        if (order.input or order.set) and not is_published(row.style) and remote_of(service) is None:
            service.declared = declared_code(app, "weft fork")
        forked = await run_operations(service).fork(row.id, order, by=login())
    if json:
        print_json(forked)
        return
    print(forked.id, flush=True)
    say(f"{forked.id} shares {forked.seq:,} of {row.seq:,} events with {row.id}; weft diff {row.id} {forked.id}")

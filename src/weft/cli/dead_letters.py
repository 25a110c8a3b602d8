"""Dead letters on the terminal: what failed for good and no edge of its graph took."""

from __future__ import annotations

from weft.cli.entry import say
from weft.cli.output import Text, console, document, failure_text, iso, moment, print_json, print_table, value
from weft.cli.place import described, found, opened, url_of
from weft.core import commands as c
from weft.core.ids import RunId
from weft.errors import UsageError
from weft.stores import shown_url


async def print_letters(run: str | None, *, url: str | None, app: str | None, json: bool) -> None:
    """All dead letters, or those of runs whose ids begin so."""
    address = url_of(url, app)
    async with opened(address) as door:
        letters = [item async for item in door.letters(run)]
        if json:
            listed = [
                {
                    "id": f"{row.id}:{token}",
                    "run": row.id,
                    "workflow": row.workflow,
                    "node": letter.node,
                    "at": iso(letter.at),
                    "input": document(bytes(letter.input)),
                    "error": {"type": letter.failure.type, "message": letter.failure.message},
                    "attempts": letter.failure.attempts,
                }
                for row, token, letter in letters
            ]
            print_json({"store": shown_url(address), "letters": listed})
            return
        out = console()
        if not letters:
            out.print(f"No dead letters. Store: {described(address)}.")
            return
        rows = [
            (
                f"{row.id}:{token}",
                letter.node,
                moment(letter.at),
                value(bytes(letter.input)),
                failure_text(letter.failure),
            )
            for row, token, letter in letters
        ]
        print_table(out, ("id", "node", "since", "input", "error"), rows)
        out.print(Text(f"Store: {described(address)}. weft dlq requeue ID · weft dlq discard ID", style="dim"))


async def change_letter(action: str, letter: str, *, url: str | None, app: str | None) -> None:
    """Let it work again, or put it away."""
    run, colon, token = letter.rpartition(":")
    if not colon:
        raise UsageError(f"{letter!r} is no dead letter.", hint="Its id is RUN:TOKEN: weft dlq list")
    async with found(run, url, app) as (door, row):
        command = c.RequeueLetter(token) if action == "requeue" else c.DiscardLetter(token)
        await door.reopen(RunId(row.id), command)
        say(f"{row.id} works on it again" if action == "requeue" else f"the letter of {row.id} is put away")

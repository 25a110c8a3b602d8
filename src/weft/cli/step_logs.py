"""Print what the steps of a run printed and logged."""

from __future__ import annotations

import msgspec

from weft.cli.output import SafeText, console, iso_time, time_text
from weft.cli.store_access import open_run
from weft.core.escapes import escape_json
from weft.core.plurals import pluralize
from weft.observe.step_logs import LogLine, follow_lines
from weft.ports.step_logs import LogQuery

COLOURS = {"warning": "yellow", "error": "red", "critical": "bold red", "debug": "dim"}
_NOTHING = "The steps of this run have printed and logged nothing, or nothing of it was kept."


async def print_logs(run: str, query: LogQuery, *, follow: bool, url: str | None, app: str | None, json: bool) -> None:
    """Print lines in order. With ``follow``, also print new ones until the run ends."""
    out = console()
    is_whole = not query.level and query.place is None
    async with open_run(run, url, app) as (service, row):
        before, heading = 0, ("", 0)
        async for line in follow_lines(service, row, query, follow=follow):
            if json:
                print(escape_json(msgspec.json.encode(log_document(line)).decode()), flush=True)
                continue
            lost = line.number - before - 1
            if is_whole and lost:
                out.print(SafeText(f"… {pluralize(lost, 'line')} left out", style="dim"))
            before = line.number
            if (line.place, line.attempt) != heading:
                heading = (line.place, line.attempt)
                out.print(SafeText(_heading(line), style="bold"))
            for text in _lines(line):
                out.print(text)
        if not before and not json:
            out.print(SafeText(f"No line of {row.id} was found." if not is_whole else _NOTHING, style="dim"))


def log_document(line: LogLine) -> dict[str, object]:
    """Return a line for programs."""
    return {
        "number": line.number,
        "at": iso_time(int(line.at.timestamp() * 1000)),
        "place": line.place,
        "attempt": line.attempt,
        "level": line.level,
        "source": line.source,
        "text": line.text,
    }


def _heading(line: LogLine) -> str:
    return line.place if line.attempt == 1 else f"{line.place}, attempt {line.attempt}"


def _lines(line: LogLine) -> list[SafeText]:
    """Return a line for people. One with a traceback takes several lines on the terminal."""
    first, *rest = line.text.split("\n")
    when = time_text(int(line.at.timestamp() * 1000))
    is_printed = line.source in ("stdout", "stderr")
    label = "" if is_printed else f"{line.level.upper()} {line.source}: "
    colour = COLOURS.get(line.level, "")
    shown = [SafeText.assemble((f"  {when}  ", "dim"), (label, colour or "dim"), (first, colour))]
    shown += [SafeText.assemble((" " * (len(when) + 4), ""), (text, colour)) for text in rest]
    return shown

"""Lists, makes and steers schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from weft.authoring.schedules import ScheduleAccess
from weft.cli.arguments import keep_text, read_arguments
from weft.cli.login import login
from weft.cli.messages import say
from weft.cli.operations import run_operations
from weft.cli.output import SafeText, console, print_json, print_table, status_text
from weft.cli.run_control import sees_hosts
from weft.cli.store_access import open_service, store_label, url_of
from weft.core import values
from weft.core.ids import RunId
from weft.core.schedule.calendar import schedule_id
from weft.errors import BadSchedule, UsageError
from weft.observe.run_hosts import hosting_of
from weft.runtime.schedule_form import ScheduleForm
from weft.runtime.schedules import AddedSchedule, NominalTime, Period, Schedule
from weft.runtime.service import RunService
from weft.runtime.typed_words import parse_word
from weft.stores import url_without_password

_PARTS = ("workflow", "dst", "overlap", "catch_up", "jitter", "until", "pause_after", "priority")
ACTIONS = ("list", "add", "next", "trigger", "backfill", "pause", "resume", "remove")


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed after the action."""

    name: str = ""
    words: Sequence[str] = ()
    options: dict[str, str | None] = {}
    """Options that describe a schedule or say when."""
    input: str | None = None


async def act_on_schedules(action: str, typed: Typed, *, url: str | None, app: str | None, json: bool) -> None:
    """Carry out a command. Raises UsageError."""
    if action == "list":
        await _print_list(url=url, app=app, json=json)
        return
    if not typed.name:
        raise UsageError(f"Say which schedule: weft schedule {action} NAME.", hint="weft schedule list shows them.")
    async with open_service(url, app, create=action == "add") as service:
        schedules = run_operations(service).schedules
        reason = typed.options.get("reason") or ""
        match action:
            case "add":
                _print_added(await _add(schedules, _form(typed)), json=json)
                await _say_if_not_hosted(service, typed.name)
            case "next":
                count = int(typed.options.get("count") or 5)
                _print_next(await schedules.next(typed.name, count), json=json)
            case "trigger":
                run = await schedules.trigger(typed.name, by=login())
                print(run, flush=True)
                await _say_if_not_hosted(service, typed.name)
            case "backfill":
                await _backfill(schedules, typed)
                await _say_if_not_hosted(service, typed.name)
            case "pause":
                await schedules.pause(typed.name, reason, by=login())
                await _say_told(service, typed.name, "is paused: times that fall into the pause are missed")
            case "resume":
                await schedules.resume(typed.name, reason, by=login())
                await _say_told(service, typed.name, "goes on")
            case _:
                await schedules.remove(typed.name, reason, by=login())
                await _say_told(service, typed.name, "is removed; the runs that it started go on")


async def _add(schedules: ScheduleAccess, form: ScheduleForm) -> AddedSchedule:
    """Make a schedule. Says how to type text that looks like a number, if the workflow does not take the input."""
    try:
        return await schedules.add(form, by=login())
    except BadSchedule as error:
        given = form.input if isinstance(form.input, Mapping) else {}
        read = [name for name, value in given.items() if not isinstance(value, str | dict | list)]
        if error.code != "schedule.bad_input" or not read or error.hint:
            raise
        hint = f"What looks like a number is one. As text, it is typed in two kinds of quotes: {read[0]}='\"…\"'"
        raise BadSchedule(error.message, hint=hint, code=error.code) from None


async def _say_told(service: RunService, name: str, done: str) -> None:
    """Say what a schedule does as it was told, or that this waits for a host."""
    if await _is_hosted(service, name):
        say(f"{name} {done}")
    else:
        say(f"no process hosts {name} now; the next host will act on this.")


async def _say_if_not_hosted(service: RunService, name: str) -> None:
    if not await _is_hosted(service, name):
        say(f"no process hosts {name} now, so it starts nothing until one does (weft serve)")


async def _is_hosted(service: RunService, name: str) -> bool:
    """Return whether a host has a schedule, as far as one can see."""
    row = await service.row(RunId(schedule_id(name)))
    return not sees_hosts(service) or (await hosting_of(service, row, None)).is_hosted


async def _backfill(schedules: ScheduleAccess, typed: Typed) -> None:
    first, last = (_schedule_time(typed.options.get(option), option) for option in ("from", "to"))
    overlap = typed.options.get("overlap") or "queue"
    count = await schedules.backfill(typed.name, Period(first=first, last=last, overlap=overlap), by=login())
    say(f"{typed.name}: {count:,} nominal times; runs that exist are left alone")
    if count and (await schedules.get(typed.name)).status == "paused":
        say(f"{typed.name} is paused: the backfill begins when it is resumed (weft schedule resume {typed.name})")


def _form(typed: Typed) -> ScheduleForm:
    """Return the schedule that was typed: the workflow, its arguments, and options. Raises UsageError."""
    if not typed.words:
        raise UsageError("Say what it starts: weft schedule add NAME WORKFLOW [KEY=VALUE]... --cron '0 9 * * *'.")
    options: dict[str, Any] = {name: text for name, text in typed.options.items() if text is not None}
    known = {name: options[name] for name in ScheduleForm.__struct_fields__ if name in options}
    for name in {"pause_after", "priority"} & known.keys():
        known[name] = parse_word(known[name])
    named = read_arguments(typed.words[1:], typed.input, keep_text)
    arguments = {key: parse_word(value) if isinstance(value, str) else value for key, value in named.items()}
    return ScheduleForm(name=typed.name, workflow=typed.words[0], input=arguments, **known)


def _schedule_time(text: str | None, option: str) -> datetime:
    try:
        return datetime.fromisoformat(text or "")
    except ValueError:
        hint = "Write 2026-11-16 or 2026-11-16T09:00+01:00."
        raise UsageError(f"--{option} {text or ''} is not a time.", hint=hint) from None


async def _print_list(*, url: str | None, app: str | None, json: bool) -> None:
    address = url_of(url, app)
    async with open_service(address) as service:
        found = [schedule async for schedule in run_operations(service).schedules.all()]
    if json:
        print_json({"store": url_without_password(address), "schedules": found})
        return
    out = console()
    if not found:
        out.print(f"No schedules. Store: {store_label(address)}.")
        return
    print_table(
        out,
        ("NAME", "STATUS", "WORKFLOW", "WHEN", "NEXT (UTC)", "FIRED", "MISSED", "LAST RUN", "REASON"),
        [_schedule_line(one) for one in found],
    )
    out.print(SafeText(f"Store: {store_label(address)}. weft schedule next NAME", style="dim"))


def _schedule_line(schedule: Schedule) -> tuple[str | SafeText, ...]:
    return (
        schedule.name,
        status_text(schedule.status),
        schedule.workflow,
        _when(schedule),
        f"{schedule.next:%Y-%m-%d %H:%M:%S}" if schedule.next is not None else "",
        f"{schedule.fired:,}",
        f"{schedule.missed:,}",
        schedule.last_run or "",
        schedule.reason,
    )


def _when(schedule: Schedule) -> str:
    return f"{schedule.cron} {schedule.timezone}" if schedule.cron else f"every {schedule.every}"


def _print_added(schedule: AddedSchedule, *, json: bool) -> None:
    if json:
        print_json(schedule)
        return
    upcoming = f"{schedule.next:%Y-%m-%d %H:%M:%S} UTC" if schedule.next is not None else "never"
    if schedule.replaced is not None:
        say(f"{schedule.name} is changed: {_changes(schedule.replaced, schedule)}")
    say(f"{schedule.name} starts {schedule.workflow}; the next time is {upcoming}")
    if schedule.warning:
        say(schedule.warning)


def _changes(before: Schedule, now: Schedule) -> str:
    """Say which parts of a schedule are others now, and what they were."""
    parts = {name: (getattr(before, name), getattr(now, name)) for name in _PARTS}
    parts["when"] = (_when(before), _when(now))
    parts["input"] = (_input_text(before.input), _input_text(now.input))
    return "; ".join(f"{name} from {old} to {new}" for name, (old, new) in parts.items() if old != new)


def _input_text(input: msgspec.Raw) -> str:
    return values.preview_text(values.decode(bytes(input)))


def _print_next(times: Sequence[NominalTime], *, json: bool) -> None:
    if json:
        print_json({"times": list(times)})
        return
    out = console()
    if not times:
        out.print("It has no time left.")
        return
    rows = [(time.local, f"{time.at:%Y-%m-%dT%H:%M:%SZ}", time.run, time.note) for time in times]
    print_table(out, ("LOCAL", "UTC", "RUN", "NOTE"), rows)

"""Print one run: its state, what it has recorded, and why it is not done."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import msgspec
from rich.console import Console

from weft.cli.drawing import render_text
from weft.cli.goal_tree import print_plan_tree
from weft.cli.output import (
    SafeText,
    age_text,
    console,
    failure_text,
    iso_time,
    lines,
    pretty_result,
    print_json,
    recorded_document,
    run_document,
    status_text,
    time_text,
    took,
    value_text,
    with_full_stop,
)
from weft.cli.store_access import open_run, store_label
from weft.cli.tree import draw_tree
from weft.cli.usage import draw_usage
from weft.core.ids import RunUid
from weft.core.plurals import pluralize
from weft.core.start_rules import key_of_slot, kind_of_slot
from weft.errors import Failure, NotAllowed, RunUnreadable
from weft.observe.activity import Activity, activity_of, note_idle
from weft.observe.as_of import as_of
from weft.observe.explain import explain
from weft.observe.explanation import Explanation
from weft.observe.fork_line import read_fork_line
from weft.observe.history import History, Operation
from weft.observe.pictures import (
    render_mermaid,
    render_svg,
)
from weft.observe.plan_tree import PlanTree
from weft.observe.run_picture import read_overview, read_picture, shown_result
from weft.observe.run_tree import DEPTH_MAX, RunTree, TreeReader
from weft.observe.sentences import failure_advice, hold_hint, host_advice, unhosted_sentence
from weft.observe.usage import usage_of
from weft.ports.store import RunRow
from weft.runtime.finished_error import moved_to_text
from weft.runtime.run.append_extras import FORKED_FROM
from weft.runtime.service import RunService
from weft.runtime.unreadable import NOT_UNDONE

PICTURE_WIDTH = 100


async def print_picture(run: str, *, kind: str, url: str | None, app: str | None) -> None:
    """Print the picture of a graph or goal run as SVG or Mermaid. Raises NotAllowed for a run that has none."""
    async with open_run(run, url, app) as (service, row):
        picture = await read_picture(service, row)
        if picture is None:
            style = f"is a {row.style} run, which has no picture"
            why = style if row.style else "has no picture before a host takes it up"
            raise NotAllowed(f"{row.id} {why}.", hint=f"weft show {row.id}")
        print(render_svg(picture) if kind == "svg" else render_mermaid(picture))


async def print_run(run: str, *, children: bool, url: str | None, app: str | None, json: bool) -> None:
    """Print one run: its header, its operations as a tree or a picture, and its result if it has ended."""
    async with open_run(run, url, app) as (service, row):
        tree = await TreeReader(service).read(row, DEPTH_MAX if children else 0)
        history = tree.history
        if json:
            print_json({"store": service.store.url, **await _run_document(service, tree)})
            return
        out = console()
        now = service.clock.now_ms()
        activity = await activity_of(service, row)
        note_idle(history, activity)
        out.print(status_line(row, history, now))
        await print_header(out, service, row, history)
        if (known := as_of(service, row)) is not None:
            out.print(SafeText(f"as of   {time_text(known)}: newer steps may be in Redis. Look again.", style="yellow"))
        for part in activity.progress:
            out.print(SafeText(str(part), style="cyan"))
        problem = await service.reader.problem(row)
        overview = await read_overview(service, row) if problem is None and not children else None
        if isinstance(overview, PlanTree):
            print_plan_tree(out, overview, history, row.id, now)
        elif overview is not None:
            width = out.width if out.is_terminal else PICTURE_WIDTH
            out.print()
            out.print(SafeText.from_ansi(render_text(overview, width=width, color=out.is_terminal).rstrip()))
        elif history.current():
            out.print()
            out.print(draw_tree(history, row.id, now, children=tree.histories()))
        if children and problem is None and row.seq:
            usage = await usage_of(service, row)
            if usage.units or usage.budgets:
                out.print()
                draw_usage(out, usage)
        await print_end(out, service, row, history, activity)


async def print_header(out: Console, service: RunService, row: RunRow, history: History) -> None:
    """Print the facts about a run that do not change while it is watched."""
    version = f" version {row.version}" if row.version else ""
    started = None if FORKED_FROM in row.attributes else history.started  # a fork has the start of its original
    begun = f"started {time_text(started)}" if started else f"created {time_text(row.created_at)}"
    facts = [f"{row.workflow}{version}", begun]
    if history.retries:
        facts.append(f"retried {pluralize(history.retries, 'time')}")
    if row.priority:
        facts.append(f"priority {row.priority}")
    if row.slot is not None:
        facts.append(f"{kind_of_slot(row.slot)} {key_of_slot(row.slot)}".rstrip())
    parent = await service.store.directory.row(RunUid(row.parent)) if row.parent is not None else None
    if parent is not None:
        facts.append(f"child of {parent.id}")
    line = await read_fork_line(service, row)
    if line.original is not None:
        facts.append(f"fork of {line.original} at {line.seq}")
    out.print(SafeText(f"{', '.join(facts)}. Store: {store_label(service.store.url)}.", style="dim"))
    given = await _input_of(service, row, history)
    if given not in (b"null", b"{}"):
        out.print(SafeText(f"input   {value_text(given, chars_max=200)}"))
    if line.forks:
        out.print(SafeText(f"forks   {', '.join(line.forks)}", style="dim"))
    for name, part in sorted(row.attributes.items()):
        if name.startswith("weft."):
            continue
        out.print(SafeText(f"{name} = {value_text(msgspec.json.encode(part))}", style="dim"))


async def _input_of(service: RunService, row: RunRow, history: History) -> bytes:
    """Return the input of a run as JSON; null if it cannot be read."""
    if history.seq:
        return history.input
    try:
        return bytes((await service.reader.started_with(row)).input)
    except RunUnreadable:
        return b"null"


def status_line(row: RunRow, history: History, now: int) -> SafeText:
    """Return the id of a run, its status, and how long it took or has been running."""
    began = row.created_at if FORKED_FROM in row.attributes else history.started or row.created_at
    length = f" in {took(history.ended - began)}" if history.ended is not None else f" for {age_text(now - began)}"
    return SafeText.assemble((row.id, "bold"), "  ", status_text(row.status), (length, "dim"))


async def print_end(out: Console, service: RunService, row: RunRow, history: History, activity: Activity) -> None:
    """Print how the run ended or, if it has not ended, which command explains why."""
    out.print()
    problem = await service.reader.problem(row)
    if problem is not None:
        if row.status == "cancelled":
            out.print(SafeText(f"cancelled. {NOT_UNDONE}", style="yellow"))
        out.print(SafeText(problem.message, style="red"))
        out.print(SafeText(problem.hint, style="dim"))
    elif row.slot is not None and not row.seq and row.ended_at is None:
        why = (await explain(service, row)).summary
        out.print(SafeText(with_full_stop(why[:1].upper() + why[1:]), style="dim"))
    elif history.status == "completed":
        whole = await service.values.load(history.output)
        result = pretty_result(await shown_result(service, row, whole)).replace("\n", "\n  ")
        out.print(lines(f"→ {result}", style="green"))
        _print_not_undone(out, history)
    elif history.status == "failed" and history.failure is not None:
        print_traceback(out, history.failure)
        text, step = failure_text(history.failure), history.failure.step
        out.print(SafeText(f"failed{f' in {step}' if step and step not in text else ''}: {text}", style="red"))
        _print_not_undone(out, history)
        out.print(SafeText(failure_advice(row.id, row.workflow, history.failure), style="dim"))
    elif history.status == "cancelled":
        out.print(SafeText(f"cancelled{f': {history.reason}' if history.reason else ''}", style="yellow"))
        _print_not_undone(out, history)
    elif history.status == "moved":
        out.print(SafeText(f"moved{moved_to_text(row)}; another store goes on with it", style="yellow"))
    elif history.held:
        out.print(SafeText(history.held, style="red"))
        has_mail = bool(await service.store.log.inbox(row.uid))
        out.print(SafeText(hold_hint(row.id, history.held, has_mail=has_mail), style="dim"))
    else:
        failing = [operation.failure for operation in history.open() if operation.failure is not None]
        if failing:
            print_traceback(out, failing[-1])
        hosting = activity.hosting
        why = unhosted_sentence(row.workflow, hosting)
        unhosted = f"{with_full_stop(why[:1].upper() + why[1:])} " if why else ""
        version = hosting.missing_version
        advice = f"{host_advice(row.workflow, row.style, version)} " if version else ""
        out.print(SafeText(f"{unhosted}{advice}What it waits for: weft explain {row.id}", style="dim"))


def _print_not_undone(out: Console, history: History) -> None:
    if history.not_undone:
        out.print(SafeText(f"not undone: {', '.join(history.not_undone)}", style="red"))


def print_traceback(out: Console, failure: Failure) -> None:
    """Print the recorded traceback of a failure, if it has one."""
    if failure.traceback:
        out.print(lines(indent(failure.traceback, "  "), style="dim"))
        out.print()


async def _run_document(service: RunService, tree: RunTree) -> dict[str, Any]:
    row, history = tree.row, tree.history
    given = await _input_of(service, row, history)
    problem = await service.reader.problem(row)
    entries = [operation_document(operation) for operation in history.current()]
    for entry in entries:
        child = tree.children.get(entry["child"] or "")
        if child is not None:
            entry["run"] = await _run_document(service, child)
    is_done = history.status == "completed"
    return run_document(row) | {
        "started_at": iso_time(history.started),
        "retries": history.retries,
        "as_of": iso_time(as_of(service, row)),
        "input": msgspec.json.decode(await service.values.load(given)),
        "result": msgspec.json.decode(await service.values.load(history.output)) if is_done else None,
        "failure": msgspec.to_builtins(history.failure) if history.status == "failed" else None,
        "reason": history.reason or None,
        "held": history.held or None,
        "problem": {"code": problem.code, "message": problem.message, "hint": problem.hint} if problem else None,
        "progress": msgspec.to_builtins((await activity_of(service, row)).progress),
        "entries": entries,
    }


def operation_document(operation: Operation) -> dict[str, Any]:
    """Return a recorded operation for programs."""
    return {
        "location": operation.location,
        "kind": operation.kind,
        "what": operation.what,
        "status": operation.status,
        "attempts": operation.attempts,
        "started_at": iso_time(operation.started),
        "ended_at": iso_time(operation.ended),
        "due": iso_time(operation.due),
        "output": recorded_document(operation.output),
        "failure": msgspec.to_builtins(operation.failure) if operation.failure is not None else None,
        "child": operation.child or None,
    }


async def print_explanation(run: str, *, url: str | None, app: str | None, json: bool) -> None:
    """Print what a run waits for, since when, and what would unblock it."""
    async with open_run(run, url, app) as (service, row):
        explanation = await explain(service, row)
        if json:
            print_json({"store": service.store.url, **_explained(explanation)})
            return
        out = console()
        out.print(
            SafeText.assemble((explanation.run, "bold"), f" ({explanation.workflow}) is ", status_text(row.status))
        )
        out.print(SafeText(with_full_stop(explanation.summary)))
        for part in explanation.progress:
            out.print(SafeText(str(part), style="cyan"))
        now = service.clock.now_ms()
        for item in explanation.waiting:
            since = int(item.since.timestamp() * 1000)
            until = f", until {time_text(int(item.until.timestamp() * 1000))}" if item.until is not None else ""
            out.print()
            out.print(SafeText.assemble("  ", (item.location, "bold"), f"  {item.what}"))
            out.print(SafeText(f"    since {time_text(since)} ({age_text(now - since)}){until}", style="dim"))
            if item.unblock:
                out.print(SafeText(f"    {item.unblock}", style="cyan"))
        for section in explanation.sections:
            out.print()
            out.print(SafeText(section.heading, style="dim"))
            for told in section.lines:
                out.print(SafeText(f"  {told.text}"))
        if explanation.budget:
            out.print()
            for sentence in explanation.budget:
                out.print(SafeText(sentence))
        if explanation.hint:
            out.print()
            for line in explanation.hint.split("\n"):
                out.print(SafeText(line.strip()))
        out.print(SafeText(f"Store: {store_label(service.store.url)}.", style="dim"))


def _explained(explanation: Explanation) -> dict[str, Any]:
    waiting = [
        {
            "kind": item.kind,
            "location": item.location,
            "what": item.what,
            "since": item.since,
            "until": item.until,
            "unblock": item.unblock or None,
        }
        for item in explanation.waiting
    ]
    return {
        "run": explanation.run,
        "workflow": explanation.workflow,
        "status": explanation.status,
        "summary": explanation.summary,
        "steps_done": explanation.steps_done,
        "waiting": waiting,
        "progress": msgspec.to_builtins(explanation.progress),
        "hint": explanation.hint or None,
        "joins": explanation.joins,
        "path": explanation.path,
        "skipped": explanation.skipped,
        "code": explanation.code or None,
    }

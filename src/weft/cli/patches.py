"""Patch a run from the command line, print the plan, and list the versions of a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from weft.cli.app_file import load_app
from weft.cli.diffs import print_changes, value_lines
from weft.cli.login import login
from weft.cli.operations import remote_of, run_operations
from weft.cli.output import SafeText, console, lines, print_json, print_table
from weft.cli.store_access import open_run
from weft.core.durations import duration_ms
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.patches import patch_refused
from weft.documents.text import UnreadableText, read_text
from weft.errors import BadPatch, UsageError
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.patches import PatchOptions, PatchService
from weft.runtime.programs import is_published
from weft.settings import project_text


class TypedPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch as it was typed."""

    file: str | None
    to: str
    undo: bool
    redo: bool
    ends: bool
    expect: str
    reason: str
    dry_run: bool
    wait: str = ""
    at: str = ""
    review: list[str] = []


async def patch_run(run: str, typed: TypedPatch, *, url: str | None, app: str | None, json: bool) -> None:
    """Patch a run, undo a patch, or print the plan of that. Raises PatchRefused, BadPatch."""
    options = PatchOptions(
        by=login(),
        reason=typed.reason,
        expect=typed.expect,
        dry_run=typed.dry_run,
        wait_ms=duration_ms(typed.wait) if typed.wait else 0,
        at=typed.at,
        review=typed.review,
    )
    document = _patch_document(typed)
    async with open_run(run, url, app) as (service, row):
        if not is_published(row.style) and remote_of(service) is None:
            service.declared = declared_code(app)
        operations = run_operations(service)
        if typed.undo:
            plan = await operations.undo_patch(row.id, options, redo=typed.redo, ends=typed.ends)
        else:
            try:
                plan = await operations.patch(row.id, document, options)
            except BadPatch as error:
                raise _in_file(error, typed.file) from None
    if json:
        print_json(plan)
    else:
        _print_plan(plan)
    if plan.refusals and not plan.asked and (typed.dry_run or not typed.wait):
        raise patch_refused(plan)


def _in_file(error: BadPatch, file: str | None) -> BadPatch:
    """Return the error with the name of the file that has the patch."""
    if file is None or file == "-":
        return error
    return BadPatch(f"{file}: {error.message}", hint=error.hint, code=error.code, **error.context)


async def withdraw_patch(run: str, number: int, *, reason: str, url: str | None, app: str | None, json: bool) -> None:
    """Drop a patch that waits or is being reviewed. Raises NotFound, Refused."""
    async with open_run(run, url, app) as (service, row):
        found = await run_operations(service).run_handle(row.id).withdraw_patch(number, by=login(), reason=reason)
    if json:
        print_json(found)
    else:
        console().print(lines(f"{found.run}: patch {found.asked} {found.status}"))


def declared_code(app: str | None, command: str = "weft patch") -> HostCatalogue | None:
    """Return the workflows of the app that was named, here or in ``[tool.weft]``. Raises UsageError."""
    target = app or project_text("app")
    return load_app(target, command).app.catalogue() if target else None


def patch_options(typed: TypedPatch) -> dict[str, Any]:
    """Return a patch as the options of a bulk. Raises BadPatch, UsageError."""
    if typed.undo:
        return {"redo" if typed.redo else "undo": True, **({"ends": True} if typed.ends else {})}
    return {"patch": _patch_document(typed)}


def _patch_document(typed: TypedPatch) -> dict[str, Any]:
    return {"to": typed.to} if typed.to else read_patch(typed.file) if typed.file is not None else {}


def read_patch(file: str) -> dict[str, Any]:
    """Read a patch from a file or from stdin. A list is a list of operations. Raises BadPatch, UsageError."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8-sig")
        data = read_text(text).data
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, UnreadableText) as error:
        raise BadPatch(f"{file} is not YAML or JSON: {error}.") from None
    if isinstance(data, list):
        return {"ops": data}
    if not isinstance(data, dict):
        raise BadPatch(f"{file} has no patch.", hint="It has a mapping with ops, document or to.")
    return data


async def print_versions(run: str, *, url: str | None, app: str | None, json: bool) -> None:
    """Print the versions that a run has followed, oldest first."""
    async with open_run(run, url, app) as (service, row):
        found = await PatchService(service).versions(row.id)
    if json:
        print_json({"run": row.id, "versions": found})
        return
    undone = {one.rev: one.undoes for one in found}
    rows = [
        (
            str(one.rev),
            one.version[:16],
            f"{one.at.astimezone():%Y-%m-%d %H:%M:%S}",
            one.by,
            _what_it_undoes(one.undoes, undone) or (f"retried from {one.retried}" if one.retried else ""),
            one.reason,
        )
        for one in found
    ]
    out = console()
    print_table(out, ("REV", "VERSION", "SINCE", "BY", "CHANGE", "REASON"), rows)
    for one in found:
        if one.diff:
            out.print(SafeText(f"Rev {one.rev}", style="bold"))
            print_changes(out, value_lines(one.diff))


def _what_it_undoes(rev: int, undone: Mapping[int, int]) -> str:
    """Return which patch a version undoes or, if that was an undo itself, which patch it makes again."""
    verb, patch = "", rev
    while rev:
        verb, patch, rev = "redoes" if verb == "undoes" else "undoes", rev, undone.get(rev, 0)
    return f"{verb} {patch}" if verb else ""


def _print_plan(plan: PatchPlan) -> None:
    out = console()
    if plan.unchanged and not plan.asked:
        out.print(lines(f"{plan.run} is already as this patch would leave it, so nothing was changed"))
        return
    asked = "asks for a review of its patch" if plan.review else "waits to be patched"
    done = "patched" if plan.applied else "would be patched" if plan.ok else "cannot be patched"
    done = asked if plan.asked else "has the patch and has not applied it yet" if plan.accepted else done
    out.print(lines(f"{plan.run} {done}: {plan.base[:16]} -> {plan.version[:16]}, rev {plan.rev}"))
    for change in plan.changes:
        out.print(lines(f"  {change}"))
    for entry in plan.entries:
        to = f" -> {entry.to}" if entry.to else ""
        detail = f" ({entry.detail})" if entry.detail else ""
        out.print(lines(f"  {entry.what} {entry.place}{to}{detail}"))
    for note in plan.notes:
        out.print(lines(f"  note: {note}"))
    for refusal in plan.refusals:
        place = f" at {refusal.place}" if refusal.place else ""
        hint = f" {refusal.hint}" if refusal.hint else ""
        out.print(lines(f"  refused{place}: {refusal.message} [{refusal.code}]{hint}"))
    if plan.verdict:
        out.print(lines(f"  from here: {plan.verdict}"))
    if plan.asked and plan.review:
        out.print(lines(f"  to decide: weft decide {plan.run}:patch@{plan.asked} approve|reject"))
    if plan.asked:
        out.print(lines(f"  patch {plan.asked}; to see it: weft explain {plan.run}"))
        out.print(lines(f"  to drop it: weft patch {plan.run} --withdraw {plan.asked}"))
    elif plan.accepted:
        out.print(lines(f"  to see whether it was applied: weft show {plan.run} --versions"))
    elif plan.ok and not plan.applied:
        out.print(lines(f"  to apply exactly this: --expect {plan.digest}"))

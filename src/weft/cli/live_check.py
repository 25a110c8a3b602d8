"""Check every open run in the store against the code of an app, and print what does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.authoring.live_bundles import save_groups
from weft.authoring.live_runs import change_to_try, check_runs
from weft.cli.app_file import load_app
from weft.cli.output import SafeText, console, print_json, print_table
from weft.cli.patches import read_patch
from weft.cli.run_list import TypedRunFilter
from weft.cli.store_access import open_service, store_label, url_of
from weft.core.plurals import pluralize
from weft.errors import UsageError
from weft.observe.live_check import NEXT, LiveReport, OpenRuns
from weft.observe.live_finding import HARMLESS
from weft.settings import project_text
from weft.stores import url_without_password


class TypedCheck(msgspec.Struct, frozen=True):
    """Which open runs to check, as it was typed."""

    files: Sequence[str]
    workflow: str | None
    status: str | None
    since: str | None
    sample: int
    to: str | None = None
    replan: bool = False
    save: str | None = None

    def query(self, now: int) -> OpenRuns:
        """Return the query. Raises UsageError."""
        found = TypedRunFilter(self.workflow, self.status, self.since, (), 1, None).found(now)
        return OpenRuns(workflow=found.workflow, status=found.status, since=found.since, sample=self.sample)


async def check_open_runs(typed: TypedCheck, *, url: str | None, app: str | None, json: bool) -> bool:
    """Check open runs and print what was found. Returns whether a run would not go on with this code."""
    targets = [*typed.files, *([app] if app is not None else [])] or [project_text("app")]
    if len(targets) != 1 or not targets[0]:
        raise UsageError("weft check --live needs one app.", hint="weft check app.py --live, or --app app.py")
    loaded = load_app(targets[0], "weft check")
    address = url_of(url, targets[0], loaded)
    async with open_service(address) as service:
        change, query = change_to_try(_read_change(typed.to), typed.query(service.clock.now_ms()), replan=typed.replan)
        report = await check_runs(
            loaded.app.catalogue(), service, query, change=change, tolerant=loaded.app.is_tolerant
        )
        if typed.save is not None:
            report = await save_groups(service, report, Path(typed.save))
    if json:
        print_json(
            {"store": url_without_password(address), "ok": report.ok, **msgspec.structs.asdict(report), "note": NEXT}
        )
    else:
        _print_live_report(report, address)
    return not report.ok


def _read_change(to: str | None) -> str | Mapping[str, Any] | None:
    """Return what was typed after ``--to``: a version, or the content of a file. Raises BadPatch."""
    return read_patch(to) if to is not None and Path(to).is_file() else to


def _print_live_report(report: LiveReport, address: str) -> None:
    out = console()
    left_out = f", {report.left_out:,} alike left out" if report.left_out else ""
    out.print(f"{pluralize(report.checked, 'open run')} checked{left_out}. Store: {store_label(address)}.")
    if report.groups:
        print_table(
            out,
            ("RUNS", "WORKFLOW", "VERSION", "VERDICT", "PLACE", "EXAMPLE"),
            [
                (
                    f"{one.count:,}",
                    one.workflow,
                    one.version[:16],
                    SafeText(one.verdict, style="green" if one.verdict in HARMLESS else "bold red"),
                    one.place,
                    one.example,
                )
                for one in report.groups
            ],
        )
    examples: dict[str, list[str]] = {}
    for one in report.groups:
        examples.setdefault(one.message, []).append(one.example)
    for message, runs in examples.items():
        if message:
            is_named = message.startswith(f"{runs[0]} ")
            out.print(SafeText(message if is_named else f"{', '.join(runs)}: {message}"))
    for one in report.groups:
        if one.file:
            out.print(SafeText(f"{one.example} is in {one.file}"))
    out.print(SafeText(NEXT, style="dim"))

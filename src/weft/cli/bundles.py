"""Exports runs to files and imports them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from weft.cli.login import login
from weft.cli.messages import say
from weft.cli.operations import run_operations
from weft.cli.output import print_json
from weft.cli.store_access import open_run, open_service
from weft.core.plurals import pluralize
from weft.errors import Refused, UsageError
from weft.runtime.bundles.archive import FILE_BYTES_MAX
from weft.runtime.bundles.service import BundleService


class ExportOptions(msgspec.Struct, frozen=True):
    """The options of ``weft export``."""

    tree: bool
    streams: bool
    out: str | None
    redact: Sequence[str]
    json: bool


async def export_run(run: str, options: ExportOptions, *, url: str | None, app: str | None) -> None:
    """Write a run to a new file, or to the output if that is no terminal. Raises UsageError, NotFound, Refused."""
    if options.json and (options.tree or options.streams):
        raise UsageError("--json is for one run without children.", hint="Leave out --json: -o FILE --tree")
    async with open_run(run, url, app) as (service, row):
        out = options.out or (None if options.json or not sys.stdout.isatty() else _file_name(row.id))
        if out is not None:
            _refuse_existing(Path(out))
        if options.json:
            events = await BundleService(service).export_events(row.id, redact=options.redact)
            data = msgspec.json.format(msgspec.json.encode(events), indent=1) + b"\n"
        else:
            bundles = run_operations(service).bundles
            data = await bundles.export(row.id, tree=options.tree, streams=options.streams, redact=options.redact)
    if out is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    _write(Path(out), data)
    say(f"{row.id} is in {out} ({len(data):,} bytes)")


async def move_run(run: str, options: ExportOptions, *, to: str, reason: str, url: str | None, app: str | None) -> None:
    """Move a run out of the store, and write its bundle. Raises UsageError, NotFound, Refused."""
    if options.tree or options.streams or options.json or options.redact:
        raise UsageError(
            "--move takes the whole tree with everything.", hint="Leave out all but -o, --to and --reason."
        )
    async with open_run(run, url, app) as (service, row):
        path = Path(options.out or _file_name(row.id))
        _refuse_existing(path)
        part = path.with_name(f"{path.name}.part")
        _write(part, b"")  # before the run ends, because then it is too late to find out
        try:
            data = await run_operations(service).bundles.move(row.id, to=to, reason=reason, by=login())
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    again = f"The run was moved. To write its bundle again: weft export {row.id} --move -o FILE"
    _write(part, data, hint=again)
    try:
        part.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", hint=again) from None
    say(f"{row.id} was moved: it goes on where {path} is adopted (weft import {path} --adopt)")


def _refuse_existing(path: Path) -> None:
    """Raise Refused if the file is there: another run may be in it."""
    if path.is_file():
        raise Refused(
            f"{path} exists already, and was not changed.", hint="Name another file: -o FILE", code="backup.file_exists"
        )


def _write(path: Path, data: bytes, *, hint: str = "") -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", hint=hint) from None


async def import_bundle(file: str, *, adopt: bool, url: str | None, app: str | None, json: bool) -> None:
    """Import the runs of a bundle and print their ids. Raises Corrupt, IdTaken, UsageError."""
    data = read_bundle_file(file)
    async with open_service(url, app, create=True) as service:
        done = await run_operations(service).bundles.import_(data, adopt=adopt, by=login())
    if json:
        print_json(done)
        return
    for run in done.runs:
        print(run.id, flush=True)
    new = sum(run.created for run in done.runs)
    left_out = f"; {pluralize(done.redacted, 'value')} had been left out" if done.redacted else ""
    if adopt:
        say(f"{pluralize(new, 'run')} adopted, {len(done.runs) - new} here already. weft show {done.runs[0].id}")
        return
    say(f"{pluralize(new, 'run')} imported, {len(done.runs) - new} here already{left_out}. weft list --imported")


def read_bundle_file(file: str) -> bytes:
    """Return the content of a file. Raises UsageError."""
    path = Path(file)
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise UsageError(f"{file} has more than {FILE_BYTES_MAX:,} bytes, so it is no bundle.")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None


def _file_name(run_id: str) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in run_id).lstrip(".")
    return f"{safe[:100] or 'run'}.weft.zip"

"""Keep one bundle for each group of a check of open runs: recorded runs as regression tests for the next change."""

from __future__ import annotations

import asyncio
from collections.abc import Container
from pathlib import Path

import msgspec

from weft.errors import NotFound, RunUnreadable, UsageError
from weft.observe.live_check import LiveGroup, LiveReport
from weft.runtime.bundles.service import BundleService
from weft.runtime.service import RunService

NAME_MAX = 120


async def save_groups(service: RunService, report: LiveReport, folder: Path) -> LiveReport:
    """Write the example of each group to a file in a folder. Returns the report with their names. Raises UsageError.

    A run that cannot be read, or was deleted meanwhile, has none.
    """
    groups: list[LiveGroup] = []
    names: set[str] = set()
    for group in report.groups:
        try:
            data = await BundleService(service).export(group.example)
        except (NotFound, RunUnreadable):
            groups.append(group)
            continue
        name = _file_name(group, names)
        names.add(name)
        await asyncio.to_thread(_write, folder, name, data)
        groups.append(msgspec.structs.replace(group, file=str(folder / name)))
    return msgspec.structs.replace(report, groups=groups)


def _write(folder: Path, name: str, data: bytes) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    except OSError as error:
        raise UsageError(f"{folder / name} cannot be written: {error.strerror}.") from None


def _file_name(group: LiveGroup, taken: Container[str]) -> str:
    """Return a name that is the same for the same group in every check."""
    words = "-".join(filter(None, (group.workflow, group.version[:16], group.verdict, group.place)))
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in words).lstrip(".-")[:NAME_MAX]
    count = 1
    while (name := f"{safe}{f'-{count}' if count > 1 else ''}.zip") in taken:
        count += 1
    return name

"""Prepare the patch of a code run: replay its log in isolation against the version that it is to follow.

Code is deployed, not patched: the version must be declared by a host. The replay needs its code in this process.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw

from weft.core.code.patch import ReplayReport
from weft.core.findings import Finding
from weft.core.run.patch_plan import PatchRefusal
from weft.core.run.state import State
from weft.errors import BadPatch, NotFound, Refused
from weft.ports.store import RunRow
from weft.runtime.patch_parts import PatchParts, PreparedPatch
from weft.runtime.run.replay import Replayed
from weft.runtime.version_refs import VersionRef

NAMES_MAX = 5


class CodePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A patch of a code run as it is written."""

    to: str
    """The version to follow, or a tag."""
    weft: Literal["patch/1"] = "patch/1"
    base: str = ""
    reason: str = ""


_patch: msgspec.json.Decoder[CodePatch] = msgspec.json.Decoder(CodePatch)
_encode = msgspec.json.Encoder().encode


async def prepare_code_patch(parts: PatchParts, row: RunRow, patch: bytes) -> PreparedPatch:
    """Replay a run against the version that a patch names. Raises BadPatch, Refused. Writes nothing."""
    form = read_code_patch(patch)
    version = await named_version(parts, row, form.to)
    return await _prepared(parts, row, version, base=form.base, reason=form.reason)


async def prepare_code_undo(parts: PatchParts, row: RunRow, state: State, rev: int) -> PreparedPatch:
    """Replay a run against the version before a patch. Raises Refused."""
    return await _prepared(parts, row, state.revisions[rev - 1].base)


def read_code_patch(patch: bytes) -> CodePatch:
    """Read a patch and check its form. Raises BadPatch."""
    try:
        form = _patch.decode(patch)
    except msgspec.ValidationError as error:
        raise _bad_patch(f"{str(error)[0].lower()}{str(error)[1:]}") from None
    if not form.to.strip():
        raise _bad_patch("the version is empty")
    return form


def _bad_patch(message: str) -> BadPatch:
    return BadPatch(
        f"The patch is not valid: {message}.",
        hint='A patch of a code run says which version the run is to follow: {"to": "2"}.',
        findings=[Finding("patch.invalid", f"{message}.")],
    )


async def named_version(parts: PatchParts, row: RunRow, name: str) -> str:
    """Return the version with this name or tag. One that nobody knows is refused later, with everything else."""
    if parts.code(row.workflow, name) is not None or await parts.is_offered(row.workflow, name):
        return name
    try:
        return await parts.tags.version(VersionRef(row.workflow, tag=name))
    except NotFound:
        return name


async def _prepared(parts: PatchParts, row: RunRow, version: str, *, base: str = "", reason: str = "") -> PreparedPatch:
    if not row.seq:
        hint = "Cancel it, and start the other version."
        raise Refused(f"{row.id} has not begun, so it cannot be patched.", hint=hint)
    report = ReplayReport(seq=row.seq, refusals=[refusal]) if (refusal := await _missing(parts, row, version)) else None
    return PreparedPatch(
        base=base or row.version,
        version=version,
        reason=reason,
        prepared=Raw(_encode(report or await _replayed(parts, row, version))),
    )


async def _missing(parts: PatchParts, row: RunRow, version: str) -> PatchRefusal | None:
    """Return why a run cannot come to a version: nobody hosts it, or its code is not known here."""
    if not await parts.is_offered(row.workflow, version):
        text = f"No host has {row.workflow} in version {version[:60]}, so nobody could go on with the run."
        hint = f"Deploy it first. To see what is hosted: weft workflows {row.workflow}"
        return PatchRefusal("patch.not_hosted", text, hint=hint)
    if parts.code(row.workflow, version) is None:
        text = f"The code of {row.workflow} in version {version[:60]} is not in this process to be replayed."
        hint = "Name the app that has it (--app app.py), or ask a server that hosts it."
        return PatchRefusal("patch.not_hosted", text, hint=hint)
    return None


async def _replayed(parts: PatchParts, row: RunRow, version: str) -> ReplayReport:
    seq, replayed = await parts.replay(row, version)
    refusal = refusal_of(replayed, row, version)
    return ReplayReport(
        seq=seq,
        refusals=[refusal] if refusal is not None else [],
        notes=[unvisited_note(replayed, version)] if replayed.unvisited and refusal is None else [],
    )


def refusal_of(replayed: Replayed, row: RunRow, version: str) -> PatchRefusal | None:
    """Return why a version does not fit the log of a run, with the way out; None if it fits."""
    if replayed.verdict == "fits":
        return None
    # Where code fails is a line of it, and not a place in the run.
    place = replayed.location if replayed.verdict != "raises" else ""
    where = f"at {place}" if place else "at its start"
    fork = f"weft fork {row.id}{f' --before {place}' if place else ''} --to {version}"
    if replayed.verdict == "raises":
        line = f" [{replayed.location}]" if replayed.location else ""
        text = f"Version {version[:60]} of {row.workflow} fails before it gets to where the run is"
        text = f"{text}: {replayed.message}{line}"
        hint = f"Mend the version, or fork the run: {fork}"
    else:
        text = (
            f"Version {version[:60]} of {row.workflow} does not fit the log {where}: "
            f"it has {replayed.recorded}, and the code asks for {replayed.asked}."
        )
        hint = f"Mend the version (ctx.version, ctx.removed, or the old name), or fork the run: {fork}"
    return PatchRefusal(
        f"patch.{replayed.verdict}", text, place=place, hint=hint, recorded=replayed.recorded, asked=replayed.asked
    )


def unvisited_note(replayed: Replayed, version: str) -> str:
    """Return the note about recorded entries that a version no longer comes to."""
    more = len(replayed.unvisited) - NAMES_MAX
    names = ", ".join(replayed.unvisited[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
    return f"Version {version[:60]} no longer comes to {names}. The run goes on without it."

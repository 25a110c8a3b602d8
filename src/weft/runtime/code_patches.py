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
from weft.errors import BadPatch, NotFound
from weft.ports.store import RunRow
from weft.runtime.patch_parts import PatchParts, PreparedPatch, wrong_form
from weft.runtime.run.replay_report import ReplayTarget, no_code, report_of
from weft.runtime.version_refs import VersionRef


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
    """Replay a run against the version that a patch names. Raises BadPatch. Writes nothing."""
    form = read_code_patch(patch)
    version = await named_version(parts, row, form.to)
    return await _prepare_patch(parts, row, version, base=form.base, reason=form.reason)


async def prepare_code_undo(parts: PatchParts, row: RunRow, state: State, rev: int) -> PreparedPatch:
    """Replay a run against the version before a patch."""
    return await _prepare_patch(parts, row, state.revisions[rev - 1].base)


def read_code_patch(patch: bytes) -> CodePatch:
    """Read a patch and check its form. Raises BadPatch."""
    try:
        form = _patch.decode(patch)
    except msgspec.ValidationError as error:
        raise _bad_patch(wrong_form(error)) from None
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


async def _prepare_patch(
    parts: PatchParts, row: RunRow, version: str, *, base: str = "", reason: str = ""
) -> PreparedPatch:
    report = (
        ReplayReport(seq=row.seq, refusals=[refusal])
        if (refusal := await _missing_version_refusal(parts, row, version))
        else None
    )
    return PreparedPatch(
        base=base or row.version,
        version=version,
        reason=reason,
        prepared=Raw(_encode(report or await _replay_against(parts, row, version))),
    )


async def _missing_version_refusal(parts: PatchParts, row: RunRow, version: str) -> PatchRefusal | None:
    """Return why a run cannot come to a version: nobody hosts it, or its code is not known here."""
    if not await parts.is_offered(row.workflow, version):
        text = f"No host has {row.workflow} in version {version[:60]}, so nobody could go on with the run."
        hint = f"Deploy it first. To see what is hosted: weft workflows {row.workflow}"
        return PatchRefusal("patch.not_hosted", text, hint=hint)
    if parts.code(row.workflow, version) is None:
        return no_code(row.workflow, version)
    return None


async def _replay_against(parts: PatchParts, row: RunRow, version: str) -> ReplayReport:
    seq, replayed = await parts.replay(row, version)
    program = parts.code(row.workflow, version)
    review = program.review if program is not None else ()
    return report_of(replayed, ReplayTarget(row.id, row.workflow, version), seq, review)

"""Lists workflows with their versions, and moves tags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.authoring.workflow_versions import WorkflowAccess
from weft.cli.login import login
from weft.cli.messages import say
from weft.cli.operations import run_operations
from weft.cli.output import SafeText, console, pretty_result, print_json, print_table
from weft.cli.patches import read_patch
from weft.cli.store_access import open_service, store_label, url_of
from weft.core import values
from weft.errors import NotFound, UsageError
from weft.runtime.publication import WorkflowPatch
from weft.runtime.service import RunService
from weft.runtime.tag_views import TagMoves, TagView
from weft.runtime.version_refs import DEFAULT_TAG, parse_version_ref
from weft.runtime.versions import WorkflowVersion
from weft.stores import url_without_password

TAG_HINT = "weft workflows tag NAME [TAG [VERSION | --undo | --redo]]"


class WorkflowsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed after ``weft workflows``."""

    words: Sequence[str]
    undo: bool = False
    redo: bool = False
    reason: str = ""
    all: bool = False


async def act_on_workflows(request: WorkflowsRequest, *, url: str | None, app: str | None, json: bool) -> None:
    """Carry out a command. Raises UsageError, NotFound, Refused."""
    action, *words = request.words or ["list"]
    if action != "tag" and (request.undo or request.redo or (request.reason and action != "patch")):
        raise UsageError("--undo, --redo and --reason are for tags.", hint=TAG_HINT)
    address = url_of(url, app)
    async with open_service(address) as service:
        versions = run_operations(service).workflows
        match action:
            case "tag":
                await _tag(versions, words, request, json=json)
            case "patch":
                await _patch(versions, words, request, json=json)
            case "show":
                await _print_document(service, words, json=json)
            case _:
                names = words if action == "list" else request.words
                if len(names) > 1:
                    raise UsageError(f"{action} is none of list, show, tag, patch.", hint="weft workflows --help")
                found = await versions.list(names[0] if names else None, all=request.all)
                _print_versions(found, address, json=json)


def _print_versions(found: Sequence[WorkflowVersion], address: str, *, json: bool) -> None:
    if json:
        print_json({"store": url_without_password(address), "workflows": [_version_document(one) for one in found]})
        return
    out = console()
    if not found:
        out.print(f"No workflows. Store: {store_label(address)}. A graph is stored when a process hosts it.")
        return
    rows = [
        (
            one.name,
            one.version,
            one.style,
            ", ".join(one.tags),
            f"{one.open_runs:,}" if one.open_runs else "",
            "yes" if one.hosted else "",
            f"{one.created_at.astimezone():%Y-%m-%d %H:%M:%S}" if one.created_at is not None else "",
        )
        for one in found
    ]
    print_table(out, ("WORKFLOW", "VERSION", "STYLE", "TAGS", "OPEN RUNS", "HOSTED", "SINCE"), rows)
    out.print(SafeText(f"Store: {store_label(address)}.", style="dim"))


def _version_document(version: WorkflowVersion) -> dict[str, Any]:
    """Return a version for programs, with the fields that it has beside a store too."""
    return {name: getattr(version, name) for name in WorkflowVersion.__struct_fields__}


async def _print_document(service: RunService, words: Sequence[str], *, json: bool) -> None:
    """Print the document of a version as its author wrote it, or as JSON if it was not a text."""
    if len(words) != 1:
        raise UsageError("Say which version.", hint="weft workflows show NAME[:TAG] or NAME@VERSION")
    ref = parse_version_ref(words[0])
    versions = run_operations(service).workflows
    version = ref.version or (await service.tags.version(ref) if ref.tag else None)
    if version is None:
        hosted = [one for one in await versions.list(ref.workflow) if one.origin == "hosted"]
        if not hosted:
            raise NotFound(f"There is no workflow {ref.workflow[:60]!r} in the store.")
        version = hosted[-1].version
    found = await versions.get(ref.workflow, version)
    if json:
        print_json(found)
        return
    if found.source is None:
        raise NotFound(f"{ref.workflow} {version} is code, so it has no document.")
    print(found.text or pretty_result(values.encode_trusted(found.source, what="the document has")))


async def _patch(versions: WorkflowAccess, words: Sequence[str], request: WorkflowsRequest, *, json: bool) -> None:
    """Make a version from the patch or the graph document in a file, and let a tag name it."""
    if len(words) != 2:
        raise UsageError("Say which workflow, and the file.", hint="weft workflows patch NAME[:TAG] FILE")
    ref = parse_version_ref(words[0])
    if ref.version or ref.back:
        raise UsageError(f"{words[0]} is no tag.", hint="weft workflows patch NAME[:TAG] FILE")
    done = await versions.publish(ref.workflow, ref.tag or DEFAULT_TAG, _typed_patch(words[1], request.reason))
    if json:
        print_json(done)
    else:
        say(f"{done.workflow}:{done.tag} {'now names' if done.moved else 'already names'} {done.version}")


def _typed_patch(file: str, reason: str) -> WorkflowPatch:
    """Read a patch, or a whole document, which is kept as it was written. Raises BadPatch, NotFound."""
    data = read_patch(file)
    if not _is_graph(data):
        return WorkflowPatch(patch=data, by=login(), reason=reason)
    if file == "-":
        return WorkflowPatch(patch={"document": data}, by=login(), reason=reason)
    text = Path(file).read_text("utf-8-sig")
    return WorkflowPatch(text=text, file=Path(file).name, by=login(), reason=reason)


def _is_graph(document: dict[str, Any]) -> bool:
    """Return whether a file has a whole graph, and not a patch of one."""
    return "nodes" in document and not {"ops", "document", "to"} & document.keys()


async def _tag(versions: WorkflowAccess, words: Sequence[str], request: WorkflowsRequest, *, json: bool) -> None:
    name, tag, version = (*words, "", "", "")[:3]
    changes = [bool(version), request.undo, request.redo]
    if not name or len(words) > 3 or sum(changes) > 1 or (any(changes) and not tag):
        raise UsageError("A tag needs a workflow, and is moved, undone or redone.", hint=TAG_HINT)
    if not any(changes):
        if tag:
            _print_history(await versions.history(name, tag), json=json)
        else:
            _print_tags(await versions.tags(name), name, json=json)
        return
    by = login()
    if version:
        moved = await versions.tag(name, tag, version, by=by, reason=request.reason)
    else:
        change = versions.undo_tag if request.undo else versions.redo_tag
        moved = await change(name, tag, by=by, reason=request.reason)
    if json:
        print_json(moved)
        return
    say(f"{name}:{tag} now names {moved.version}" if moved.version else f"{name}:{tag} names no version any more")


def _print_tags(tags: Sequence[TagView], name: str, *, json: bool) -> None:
    if json:
        print_json({"tags": list(tags)})
        return
    out = console()
    if not tags:
        out.print(SafeText(f"{name} has no tags. {TAG_HINT}"))
        return
    rows = [(tag.tag, tag.version or "", f"{tag.cursor} of {tag.moves}", *_last(tag)) for tag in tags]
    print_table(out, ("TAG", "VERSION", "MOVE", "BY", "AT", "REASON"), rows)


def _print_history(tag: TagMoves, *, json: bool) -> None:
    if json:
        print_json(tag)
        return
    rows = [
        (
            _position(move.number, tag.cursor),
            move.before or "",
            move.after,
            move.by,
            f"{move.at.astimezone():%Y-%m-%d %H:%M:%S}",
            move.reason,
        )
        for move in tag.history
    ]
    print_table(console(), ("", "FROM", "TO", "BY", "AT", "REASON"), rows)


def _position(number: int, cursor: int) -> str:
    if number > cursor:
        return "undone"
    return "now" if number == cursor else f"~{cursor - number}"


def _last(tag: TagView) -> tuple[str, str, str]:
    return tag.by, f"{tag.at.astimezone():%Y-%m-%d %H:%M:%S}", tag.reason

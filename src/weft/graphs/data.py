"""Read the input of a node and where its output is written: ``with``, ``save`` and ``merge``."""

from __future__ import annotations

import re
from typing import Any

from weft.core.graph.folded import FoldedSave, Source
from weft.core.graph.model import How, Merge, Target
from weft.documents.fields import Fields
from weft.documents.spellings import fold_mapping

_SEGMENT = re.compile(r"[\w-]{1,100}")
_HERE = ("_branch.output.", "branch.")
HOW: dict[str, How] = {
    "append": "append",
    "merge_object": "merge_object",
    "keyed_by_branch": "keyed_by_branch",
    "last_wins": "last_wins",
}


def fold_input(node: Fields) -> Source | None:
    """Read the template of a node's input. None means that the node gets the arriving value."""
    key = node.spelling("with", "input_mapping")
    raw = node.raw.get(key)
    if raw is None:
        return None
    if key == "with":
        return Source(raw, node.place(key))
    if not isinstance(raw, dict):
        node.wrong(key, "a mapping")
        return None
    return Source({name: fold_mapping(value) for name, value in raw.items()}, node.place(key))


def fold_writes(node: Fields) -> list[FoldedSave]:
    """Read what a node writes, in document order."""
    key = node.spelling("save", "output_mapping")
    raw = node.raw.get(key, {})
    if not isinstance(raw, dict):
        node.wrong(key, "a mapping")
        return []
    saves = []
    for path, value in raw.items():
        at = (*node.place(key), path)
        target = read_target(path, relative=key == "output_mapping")
        if target is None:
            suggestion = f"Write state.{path} or, inside a fan-out, branch.{path}." if _SEGMENT.fullmatch(path) else ""
            node.problems.add("bad_target", at, f'"{path[:60]}" cannot be written to.', suggestion)
        else:
            saves.append(FoldedSave(target, Source(fold_mapping(value) if key == "output_mapping" else value, at)))
    return saves


def read_target(text: str, *, relative: bool) -> Target | None:
    """Parse a path to write to. With ``relative``, a bare path is allowed, too."""
    if text.startswith("state."):
        return _read_target("state", text.removeprefix("state."))
    for prefix in _HERE:
        if text.startswith(prefix):
            return _read_target("here", text.removeprefix(prefix))
    return _read_target("here", text) if relative else None


def _read_target(scope: Any, text: str) -> Target | None:
    path = text.split(".")
    return Target(scope, path) if all(_SEGMENT.fullmatch(segment) for segment in path) and len(path) <= 20 else None


def fold_merge(node: Fields) -> Merge | None:
    """Read how the values of a fan-in's branches are merged into one."""
    at = node.place("merge")
    merge = Fields(node.raw["merge"], at, node.problems, ("from", "how", "into", "source", "strategy", "target"))
    how_key, into_key, from_key = (
        merge.spelling("how", "strategy"),
        merge.spelling("into", "target"),
        merge.spelling("from", "source"),
    )
    if not merge.raw:
        return None
    for key in (how_key, into_key):
        if key not in merge:
            merge.needed(key)
    how = merge.choice(how_key, HOW, None)
    into = merge.text(into_key)
    target = read_target(into, relative=into_key == "target") if into else None
    if into and target is None:
        suggestion = f"Write state.{into}." if _SEGMENT.fullmatch(into) else ""
        merge.problems.add("bad_target", merge.place(into_key), f'"{into[:60]}" cannot be written to.', suggestion)
    source = _merge_source(merge, from_key)
    return Merge(how, target, source) if how is not None and target is not None and source is not None else None


def _merge_source(merge: Fields, key: str) -> list[str] | None:
    """Read the path of the value that each branch contributes. Empty means its whole output."""
    text = merge.text(key) or "*"
    if text.startswith("*"):
        text = f"branch.output{text.removeprefix('*')}"
    if text.startswith("_branch."):
        text = text.removeprefix("_")
    if text == "branch.output":
        return []
    path = text.split(".")
    if path[0] in ("output", "branch") and len(path) <= 20 and all(_SEGMENT.fullmatch(part) for part in path):
        return path
    merge.problems.add(
        "bad_source",
        merge.place(key),
        f'"{text[:60]}" is not a path into a branch.',
        'Write output.x, branch.x or "*".',
    )
    return None

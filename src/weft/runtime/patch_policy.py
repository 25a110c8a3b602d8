"""Check patches against the policy, operation by operation: who may change what of a run or a workflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from weft.agents.policy.defaults import default_for
from weft.agents.policy.verdicts import Asked
from weft.runtime.policy import CurrentPolicy, denied_error

UNDO = "/undo"
"""The name of taking a patch back, or of taking that back."""
WHOLE = ("document", "to")
"""Patches that give a whole document. Their operations are the differences."""
ABOUT = ("weft", "base", "ops", "reason", *WHOLE)
"""Fields of a patch that change nothing by themselves."""
LISTS = ("nodes", "edges")


class Patcher(msgspec.Struct, frozen=True, kw_only=True):
    """Who patches, and what."""

    workflow: str
    tenant: str = ""
    user: str = ""
    roles: Sequence[str] = ()
    agent: str = ""


def reviewers(policy: CurrentPolicy, patcher: Patcher, names: Sequence[str]) -> list[str]:
    """Return who must agree to operations with these names; nobody if they are permitted as they are.

    Raises NotAllowed if one of them is denied.
    """
    asked = Asked(
        action="patch",
        name="",
        workflow=patcher.workflow,
        tenant=patcher.tenant,
        user=patcher.user,
        roles=tuple(patcher.roles),
        agent=patcher.agent,
    )
    found: dict[str, None] = {}
    for name in names:
        one = msgspec.structs.replace(asked, name=name)
        verdict = policy.verdict(one, default_for("patch", agent=patcher.agent))
        if verdict.permission == "deny":
            raise denied_error(one, verdict)
        if verdict.permission == "ask":
            found |= dict.fromkeys(verdict.of)
    return list(found)


def needs_names(policy: CurrentPolicy) -> bool:
    """Return whether the policy says anything about patches."""
    return policy.rules is not None and policy.rules.governs("patch")


def operation_names(patch: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the names of what a patch does: the paths of its operations, and its instructions.

    A new node or edge is ``/nodes/-`` or ``/edges/-``, however it is written. ``before`` and ``after`` are the
    documents, if the run follows one.
    """
    found: list[str] = []
    given = patch.get("ops")
    operations = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    for operation in operations:
        if operation.get("op") != "test":
            found += _paths_of_operation(operation, before)
    is_whole = any(str(one.get("path", "")).count("/") < 2 for one in operations)
    if is_whole or any(field in patch for field in WHOLE):
        found += _changed_paths(before, after)
    for field, value in patch.items():
        if field not in ABOUT:
            keys = value if isinstance(value, Mapping) and value else ()
            found += [f"/{field}/{key}" for key in keys] or [f"/{field}"]
    return list(dict.fromkeys(found))


def _paths_of_operation(operation: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    path = str(operation.get("path", ""))
    parts = path.split("/")[1:]
    adds = operation.get("op") in ("add", "copy", "move") and len(parts) == 2 and parts[0] in LISTS
    there = before.get(parts[0]) if adds else None
    is_new = adds and (isinstance(there, list) or parts[1] not in elements_by_name(there))
    yield f"/{parts[0]}/-" if is_new else _path_with_names(path, before)
    if operation.get("op") == "move":
        yield _path_with_names(str(operation.get("from", "")), before)


def _path_with_names(path: str, before: Mapping[str, Any]) -> str:
    """Return a path in which elements of lists have their names instead of their numbers."""
    parts = path.split("/")
    if len(parts) > 2 and parts[1] in LISTS and parts[2].isdecimal():
        names, number = list(elements_by_name(before.get(parts[1]))), int(parts[2])
        parts[2] = names[number] if isinstance(before.get(parts[1]), list) and number < len(names) else "-"
    return "/".join(parts)


def _changed_paths(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for field in {**before, **after}:
        old, new = before.get(field), after.get(field)
        if old == new:
            continue
        if field not in LISTS:
            yield f"/{field}"
            continue
        there, here = elements_by_name(old), elements_by_name(new)
        for key in {**there, **here}:
            if key not in there:
                yield f"/{field}/-"
            elif there[key] != here.get(key):
                yield f"/{field}/{key}"


def elements_by_name(elements: Any) -> dict[str, Any]:
    """Return nodes by name and edges by what they connect."""
    if isinstance(elements, Mapping):
        return dict(elements)
    found: dict[str, Any] = {}
    for number, element in enumerate(elements if isinstance(elements, list) else ()):
        given = element if isinstance(element, Mapping) else {}
        name = given.get("id") or given.get("name") or f"{given.get('from', number)}-{given.get('to', '')}"
        found[str(name)] = element
    return found

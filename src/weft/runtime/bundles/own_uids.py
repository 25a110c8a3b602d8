"""Give the runs of a bundle that a tenant imports uids of the tenant's own.

The uid of a run is unique in the whole store. If a tenant imported runs under the uids in the bundle, a refusal would
tell it that another tenant has such a run. A log can be read under any uid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from weft.core import events as e
from weft.core.ids import RunUid, child_uid
from weft.ports.store import StoredEvent
from weft.runtime.bundles.archive import CheckedBundle, CheckedRun
from weft.runtime.bundles.format import log_bytes


def with_own_uids(bundle: CheckedBundle, prefix: str, kept: frozenset[str]) -> CheckedBundle:
    """Return the bundle with other uids, the same ones each time. ``prefix``: that of the tenant's ids.

    The runs in ``kept`` are the tenant's own already.
    """
    uids = {uid: uid for uid in kept}
    below: dict[str | None, list[CheckedRun]] = {}
    for run in bundle.runs:
        below.setdefault(run.about.parent, []).append(run)
    root = bundle.manifest.root
    uids.setdefault(root, _own_uid(prefix, root))
    ordered = [bundle.run(root)]
    for parent in ordered:  # the list grows during the loop
        started = _children(parent, uids[parent.about.uid])
        for run in below.get(parent.about.uid, ()):
            uids.setdefault(run.about.uid, started.get(run.about.uid) or _own_uid(prefix, run.about.uid))
            ordered.append(run)
    return CheckedBundle(
        manifest=msgspec.structs.replace(bundle.manifest, root=uids[root]),
        runs=[_renamed(run, uids) for run in bundle.runs],
        definitions=bundle.definitions,
        blobs=bundle.blobs,
        output=[msgspec.structs.replace(chunk, uid=RunUid(uids[chunk.uid])) for chunk in bundle.output],
    )


def digest_of_log(uid: str, events: Sequence[StoredEvent]) -> str:
    """Return the digest of a log, as the manifest of a bundle has it."""
    return hashlib.sha256(log_bytes(RunUid(uid), events)).hexdigest()


def _own_uid(prefix: str, uid: str) -> str:
    return hashlib.blake2b(f"{prefix}{uid}".encode(), digest_size=16).hexdigest()


def _children(parent: CheckedRun, uid: str) -> Mapping[str, str]:
    """Return the uids that the children of a run have if the run has another uid."""
    if parent.about.uid == uid:
        return {}
    started = [one.seq for one in parent.events if isinstance(e.decode(one.body), e.ChildStarted)]
    return {child_uid(parent.about.uid, seq): child_uid(uid, seq) for seq in started}


def _renamed(run: CheckedRun, uids: Mapping[str, str]) -> CheckedRun:
    about, uid = run.about, uids[run.about.uid]
    if uid == about.uid:
        return run
    parent = uids.get(about.parent, about.parent) if about.parent is not None else None
    digest = digest_of_log(uid, run.events)
    return msgspec.structs.replace(run, about=msgspec.structs.replace(about, uid=uid, parent=parent, digest=digest))

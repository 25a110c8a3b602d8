"""The pages of the errors of versions, tags and bundles: what happened, why, what to do."""

from __future__ import annotations

VERSION_PAGES: dict[str, tuple[str, str, str]] = {
    "tag.no_move": (
        "A tag was to be taken back or forward, and has no move in that direction.",
        "Undo goes back to before its first move and no further. A new move cuts the moves that could be redone.",
        "Look at its moves: weft workflows tag NAME TAG. Name the version that the tag should have.",
    ),
    "run.moved": (
        "A command was given to a run that was moved to another store, or its bundle is adopted a second time.",
        "A run is performed in one store at a time. The error says where it went, if the move did.",
        "Use the run where it is, or adopt its bundle: weft import FILE --adopt. A bundle that was lost is made again.",
    ),
    "bundle.in_flight": (
        "A run cannot be moved to another store while a step of it, or of a run below it, is performed.",
        "The result would come to a store that no longer has the run. The error names the steps.",
        "weft pause RUN, so that no new work begins; move it when the steps have ended; it is paused there too.",
    ),
    "bundle.secret": (
        "A run cannot be moved, because its log contains a secret.",
        "Secrets are never in a bundle, and a run without a part of its log could not go on.",
        "Import it without --adopt, and fork it there.",
    ),
    "run.imported": (
        "A command was given to a run that was imported.",
        "An imported run can be read, replayed, compared and forked. Nothing goes on with it: nothing is done twice.",
        "Fork it: weft fork RUN. The fork goes on from where the run was when it was exported.",
    ),
    "bundle.corrupt": (
        "A bundle cannot be imported: it is damaged, or it is not what it says.",
        "All of a bundle is checked before anything is written: names, sizes, checksums, formats, logs.",
        "Nothing was written. Export the run again, or copy the file again. The message names the entry.",
    ),
    "limit.bundle": (
        "A bundle would be too large.",
        "A bundle is made in memory: at most 20,000 runs and 1 GiB.",
        "Export without --tree, or the runs below it one by one.",
    ),
}

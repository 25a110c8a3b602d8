"""The pages of the errors of retention: what happened, why, what to do."""

from __future__ import annotations

RETENTION_PAGES: dict[str, tuple[str, str, str]] = {
    "run.not_over": (
        "A run was not deleted, because it or a run below it is still open.",
        "A tree of runs is deleted as a whole, and only after its last run has ended.",
        "Wait for the end of the run that the message names, or cancel it. Then delete the tree.",
    ),
    "run.kept": (
        "A run was not deleted, because a hold lies on its tree.",
        "weft keep protects a tree from deletion by anybody, and by retention too.",
        "If it may be deleted now, end the hold: weft keep RUN --end. Both stay in the audit table.",
    ),
    "run.not_root": (
        "A run was not deleted, because it was started by another run.",
        "The log of the run above it refers to it, so the whole tree is deleted together.",
        "Delete the run at the top of the tree. weft show RUN names the parent of a run.",
    ),
}

"""The pages of the errors of retention: what happened, why, what to do."""

from __future__ import annotations

RETENTION_PAGES: dict[str, tuple[str, str, str]] = {
    "run.not_over": (
        "A run was not deleted, because it or a run below it is still open.",
        "A tree of runs is deleted as a whole, and only after its last run has ended.",
        "Wait for the end of the run that the message names, or cancel it. Then delete the tree.",
    ),
    "run.kept": (
        "A run was not deleted, or not kept for a second reason, because a hold lies on its tree.",
        "weft keep protects a tree from deletion by anybody, until it is ended. A tree has one hold at a time.",
        "weft keep RUN shows the hold, weft keep RUN --end ends it. To add a reason, put a new hold that names both.",
    ),
    "run.forked": (
        "A run was not deleted, because an open run was forked from it.",
        "A fork names the run from which it was made, and goes on with its results until it ends.",
        "Wait for the end of the fork that the message names, or cancel it. Then delete the original.",
    ),
    "run.not_root": (
        "A run was not deleted, because it was started by another run.",
        "The log of the run above it refers to it, so the whole tree is deleted together.",
        "Delete the run at the top of the tree. weft show RUN names the parent of a run.",
    ),
}

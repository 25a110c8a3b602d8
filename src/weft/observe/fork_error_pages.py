"""The pages of the errors of forks: what happened, why, what to do."""

from __future__ import annotations

FORK_PAGES: dict[str, tuple[str, str, str]] = {
    "fork.no_place": (
        "The log has no point like the one that was named.",
        "The run never came to this place, not so often, has not come past it yet, or has not failed.",
        "weft show RUN and weft events RUN show where it came. --at SEQ names a point by its event.",
    ),
    "fork.no_point": (
        "The number of the event lies outside the log.",
        "A fork shares the events 1 to SEQ, so SEQ is at most the number of the last one.",
        "Choose a number from weft events RUN.",
    ),
    "fork.bad_edit": (
        "The fork cannot be edited like this.",
        "What can be changed depends on the style of the run and on the point: only what still lies ahead.",
        "Correct everything that the message lists, or choose an earlier point. Nothing was written.",
    ),
    "fork.not_possible": (
        "This run cannot be forked.",
        "It has not begun, or it is a run of Weft itself, such as a schedule.",
        "Start the workflow instead.",
    ),
    "fork.undone": (
        "The run has undone work that the fork would share, after the point of the fork.",
        "The run failed or was cancelled, and its completed steps were undone. The fork would build on their results.",
        "Fork before the first step that was undone: --before PLACE. With --effects none the point is possible.",
    ),
    "fork.unreadable": (
        "The log of the run cannot be read, so it cannot be forked.",
        "An event is damaged, or was written by a newer version of Weft.",
        "Upgrade Weft here, or restore the store from a backup.",
    ),
    "fork.values_gone": (
        "Large values that the log refers to are no longer in the store.",
        "They are stored beside the log. They were deleted or damaged.",
        "Fork from an earlier point, before the first of them, or restore the store from a backup.",
    ),
    "fork.would_perform": (
        "A fork without effects has come to work that would have one.",
        "With --effects none nothing is performed but pure steps. The original has no result for this work.",
        "Give the work a result with weft set, then: weft resume RUN. To perform it, fork it with --effects perform.",
    ),
}

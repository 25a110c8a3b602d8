"""The pages of the errors of retries and of results set by hand: what happened, why, what to do."""

from __future__ import annotations

HAND_PAGES: dict[str, tuple[str, str, str]] = {
    "run.in_flight": (
        "A change would drop an irreversible step that a worker may be performing.",
        "Such a step must not be performed twice, and nobody knows yet whether it has been performed.",
        "Wait until it has ended. Or repeat the command with --force: its outcome is then recorded as unknown.",
    ),
    "run.no_way_back": (
        "A graph run cannot go back to this place.",
        "It never came there, the branch or round is closed, or what came from there is gone or has arrived at a join.",
        "Name another place, as weft show prints it. Or go on with a copy: weft fork RUN --before PLACE.",
    ),
    "step.rejected": (
        "A person did not allow an irreversible step to be performed again.",
        "It may have been performed before, so the run asked first.",
        "To perform it after all: weft retry RUN, and approve it. If it was performed, set its result: weft set.",
    ),
    "step.set": (
        "A person let a step fail: weft set RUN PLACE --error TEXT.",
        "The message is what the person wrote; the log says who did it and why.",
        "To perform the step after all: weft retry RUN.",
    ),
}

"""The pages of the errors of bulks: what happened, why, what to do."""

from __future__ import annotations

BULK_PAGES: dict[str, tuple[str, str, str]] = {
    "bulk.no_runs": (
        "A bulk does not say which runs it is for, or says it twice.",
        "It is for runs by their ids, or for those that a filter finds. Without either it would be for all runs.",
        "Name the ids, or filter by workflow, status, time, parent or attributes.",
    ),
    "bulk.unknown_verb": (
        "There is no bulk with this verb.",
        "Bulks have the verbs that change one run and can be given to many.",
        "Use one of the verbs that the message lists.",
    ),
    "bulk.bad_option": (
        "A bulk has an option that its verb does not take, or one of the wrong type.",
        "Options apply to every run of the bulk, so they are checked before anything is started.",
        "Correct or leave out what the message names.",
    ),
    "bulk.no_reason": (
        "A bulk that deletes runs does not say why.",
        "Who deleted a run and why is all that is left of it.",
        "Give a reason.",
    ),
    "bulk.too_many": (
        "More runs were found than one bulk may go through.",
        "A bulk keeps the ids of its runs, so that it goes through exactly those of its dry run.",
        "Narrow the filter, for example by workflow, status or time, and start several bulks.",
    ),
}

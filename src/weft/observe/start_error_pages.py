"""The pages of the errors of starts by rules: what happened, why, what to do."""

from __future__ import annotations

START_PAGES: dict[str, tuple[str, str, str]] = {
    "run.open": (
        "A run was not started or retried, because another run of its workflow with the same key is open.",
        "The workflow is a singleton: one open run per key. The message names the open run.",
        'Wait until it has ended, or cancel it: weft cancel RUN. With then="attach" a start gets the open run.',
    ),
    "start.bad_rule": (
        "The rule of a workflow about its starts cannot be used.",
        "A workflow has one of singleton, debounce and batch. A batch needs a workflow with one parameter, a list.",
        'Write for example singleton=weft.Singleton("customer_id"), or batch=weft.Batch(size=100, wait="5s").',
    ),
    "start.bad_key": (
        "A run was not started, because its key cannot be worked out from its input.",
        "The key reads what the input does not have, or is no text, number or boolean; or the items have several keys.",
        "Give what the key reads, or change the key of the workflow. Nothing was written.",
    ),
    "start.bad_batch": (
        "A run was not started, because its input is not one that the batch takes.",
        "The workflow collects items. Each start brings a list of at least one item, and not more than fit into a run.",
        "Give a list of items, as JSON if you type it: items='[1, 2]'. Nothing was written.",
    ),
    "start.batch_too_big": (
        "A run was not started, because its items are too big for a batch of this size.",
        "The items of all starts together are the input of one run, which has a limit.",
        "Make the batch smaller, or store large values elsewhere and pass where they are.",
    ),
    "start.key_in_code": (
        "A run was not started, because the key of its workflow is a function that is not known in this process.",
        "Only a process with the code of the workflow can call the function.",
        "Start the run in such a process, or over the API of its server. Or write the key in CEL.",
    ),
    "start.delayed": (
        "A run was not started, because it was given a delay.",
        "The rule of its workflow says when it begins: after quiet, or when a batch is complete.",
        "Leave out the delay.",
    ),
}

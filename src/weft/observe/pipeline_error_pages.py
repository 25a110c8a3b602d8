"""The pages of the errors of pipelines: what happened, why, what to do."""

from __future__ import annotations

PIPELINE_PAGES: dict[str, tuple[str, str, str]] = {
    "pipeline.empty": (
        "A pipeline has no steps.",
        "A pipeline has 1 to 20 steps; without any it would do nothing.",
        "Add a step, for example {step: top_k, k: 3}.",
    ),
    "pipeline.unknown_step": (
        "A pipeline has a step that does not exist.",
        (
            "The steps are http_request, table_sort, table_filter, table_select, top_k, groupby, join, jq_transform, "
            "regex_extract and parse_date."
        ),
        "Use one of them. The message has the index of the step, and the nearest name.",
    ),
    "pipeline.bad_argument": (
        "A step of a pipeline has an argument that is unknown, missing or wrong.",
        "Pipelines are checked before anything is performed. docs/pipelines.md lists the arguments of every step.",
        "Correct the argument that the message names.",
    ),
    "pipeline.not_rows": (
        "A step of a pipeline needs rows, and got something else.",
        "Rows are an array of objects.",
        "Make rows first, for example with jq_transform.",
    ),
    "pipeline.bad_value": (
        "A step of a pipeline cannot work with a value in the data.",
        "For example a text in a sum, an array in a sort, a date in another format, or an integer that jq would round.",
        "Filter such rows out before, or correct the data. The message names the row and the field.",
    ),
    "pipeline.http": (
        "A request of a pipeline failed.",
        "The server did not answer, or answered with the status 400 or above.",
        "Read the message. What is worth a retry was retried.",
    ),
    "pipeline.too_large": (
        "The data of a pipeline got too large.",
        (
            "After every step there are at most 16 MiB and 1,000,000 rows, and steps get 512 MiB of memory. A join is "
            "counted before it is made."
        ),
        "Filter rows, select fields or group before the step that the message names.",
    ),
    "pipeline.timeout": (
        "A pipeline took longer than 30 s.",
        "A program in jq may never end, so the process that performed it was killed. Nothing else was disturbed.",
        "Use less data, or a simpler step.",
    ),
}

"""Pipelines: up to 20 small steps over JSON data, mostly tables. Data flows from each step to the next.

    pipeline           reads and checks a pipeline, and says what performing it needs
    limits  faults     sizes, and what a step raises
    rows               fields, kinds and the order of values
    steps              one class per step; each is a pure function of the data
    jq_scan            what a jq program may not use
    perform            runs steps here, or in a worker process that is killed at its limits (worker, workers)

Rows are an array of objects. A field is a key of a row, or a path with dots into it.
"""

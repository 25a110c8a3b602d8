"""A graph whose only step fails for good, so that its runs have dead letters."""

from __future__ import annotations

import os

import weft

app = weft.App(os.environ.get("WEFT_URL", "sqlite:///letters.db"))


@app.step(retries=0)
async def sort(parcel: str) -> str:
    raise ValueError(f"{parcel} has no address")


app.graph(
    {
        "weft": "graph/1",
        "name": "sorting",
        "input": {"parcel": "string"},
        "nodes": {"sort": {"step": "sort", "with": {"parcel": "${input.parcel}"}}},
    }
)

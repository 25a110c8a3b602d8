"""Outputs that an expression names only after a patch are recovered from the log, for every live token."""

from __future__ import annotations

import pytest

from tests.graph.patch_table import PatchTable

DOCUMENT = {
    "name": "order",
    "nodes": {
        "price": {"step": "s", "next": "pack"},
        "pack": {"step": "s", "next": "book"},
        "book": {"step": "s", "save": {"state.booked": 1}},
    },
}
OPS = [{"op": "replace", "path": "/nodes/book/save", "value": {"state.booked": "${nodes.price.output}"}}]


@pytest.mark.parametrize("first", "0123456789abcdef")
def test_an_output_is_recalled_whatever_the_id_of_the_token_begins_with(first: str) -> None:
    run = next(run for run in map(at_pack, range(400)) if next(iter(run.state.tokens)).startswith(first))

    run.tell(run.prepare({"ops": OPS}))
    for node in ("pack", "book"):
        run.finish(node, None, {})

    assert run.state.data["booked"] == "price"
    assert run.refolded().snapshot() == run.machine.snapshot()


def at_pack(n: int) -> PatchTable:
    """Return a run whose only token is at the second node."""

    class Numbered(PatchTable):
        uid = f"{n:032x}"

    run = Numbered(DOCUMENT, {})
    run.finish("price", None, {"price": {"*": {"output": "price"}}})
    return run

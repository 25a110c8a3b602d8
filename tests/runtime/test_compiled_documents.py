"""Documents that patches have made are compiled once."""

from __future__ import annotations

from typing import Any

import pytest

from weft.errors import BadGraph
from weft.graphs.load import DocumentContext
from weft.runtime.compiled_documents import DOCUMENTS_MAX, CompiledDocuments


def document(timeout: str = "1s") -> dict[str, Any]:
    return {"name": "order", "nodes": {"charge": {"step": "charge", "timeout": timeout}}}


def test_an_equal_document_is_not_compiled_again() -> None:
    compiled = CompiledDocuments()
    first = compiled.load(document(), DocumentContext())

    assert compiled.load(document(), DocumentContext()) is first
    assert compiled.load(document("2s"), DocumentContext()).hash != first.hash


def test_a_document_is_compiled_again_with_other_node_types() -> None:
    compiled = CompiledDocuments()
    first = compiled.load(document(), DocumentContext())

    assert compiled.load(document(), DocumentContext(types={"shout": {}})) is not first


def test_a_document_whose_fields_have_another_order_is_another_one() -> None:
    """Outputs have their fields in the order of the document."""
    compiled = CompiledDocuments()
    first = compiled.load(document(), DocumentContext())
    turned = compiled.load(dict(reversed(document().items())), DocumentContext())

    assert list(first.source) != list(turned.source)


def test_only_the_newest_documents_without_problems_are_kept() -> None:
    compiled = CompiledDocuments()
    first = compiled.load(document(), DocumentContext())
    for _ in range(2):
        with pytest.raises(BadGraph):
            compiled.load({"name": "order", "nodes": {"charge": {"next": "nowhere"}}}, DocumentContext())
    for seconds in range(2, DOCUMENTS_MAX + 2):
        compiled.load(document(f"{seconds}s"), DocumentContext())

    assert compiled.load(document(), DocumentContext()) is not first

"""The published JSON Schema accepts what the loader accepts, and sees most mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests import scale
from tests.graph import seeds
from tests.graph.documents import nodes
from tests.graph.test_document_dialects import PAIRS
from tests.graph.test_document_fuzz import sensible_document
from weft.documents.text import read_text
from weft.graphs.fold import DOCUMENT, NODE, NODE_IDS
from weft.graphs.schema import document_schema

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "tests" / "golden" / "graphs").glob("*.json"))
SCHEMA = jsonschema_rs.validator_for(document_schema())
DOCUMENTS: dict[str, Any] = {
    **{path.stem: json.loads(path.read_text("utf-8"))["document"] for path in GOLDEN},
    **{path.stem: read_text(path.read_text("utf-8")).data for path in (ROOT / "examples").glob("*.yaml")},
    **{name: {"nodes": [read_text(text).data]} for name, text in seeds.NODES.items()},
    **{f"{name} {side}": document for name, pair in PAIRS.items() for side, document in pair.items()},
    **{f"random {seed}": sensible_document(seed) for seed in range(100)},
}


def test_the_schema_is_one_itself() -> None:
    jsonschema_rs.meta.validate(document_schema())


@pytest.mark.parametrize("name", scale.sample(16, sorted(DOCUMENTS)))
def test_documents_that_load_fit_the_schema(name: str) -> None:
    assert [error.message for error in SCHEMA.iter_errors(DOCUMENTS[name])] == []


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"nodes": {}},
        {"nodes": {"a": {"stepp": "s"}}},
        {"nodes": {"a": {"id": "a", "step": "s"}}},
        {"weft": "graph/2", **nodes(a={})},
        nodes(a={"pass": False}),
        nodes(a={"next": [{"too": "b"}]}),
        nodes(a={"next": [{"when": "x"}]}),
        nodes(a={"join": "most"}),
        nodes(a={"join": {"at_least": "many"}}),
        nodes(a={"repeat": {"while": "x"}}),
        nodes(a={"merge": {"how": "squash", "into": "state.x"}, "join": "all"}),
        nodes(a={"save": {"x": 1}}),
        nodes(a={"retry": 0}),
        nodes(a={"http": {}}),
        {"transitions": [{"from": "a"}], **nodes(a={})},
    ],
)
def test_mistakes_do_not_fit_the_schema(document: Any) -> None:
    assert not SCHEMA.is_valid(document)


def test_the_schema_knows_every_field_of_the_loader_and_no_other() -> None:
    schema = document_schema(types=["slack"])

    assert set(schema["properties"]) == set(DOCUMENT)
    assert set(schema["$defs"]["node"]["properties"]) == {*NODE, "slack"}
    assert set(schema["$defs"]["listed"]["properties"]) == {*NODE, *NODE_IDS, "slack"}
    assert jsonschema_rs.validator_for(schema).is_valid({"nodes": {"a": {"slack": {"channel": "#x"}}}})

"""The document is made from the table, complete, valid, and every operation in it has a test."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

import weft
from weft.server.openapi import openapi_document
from weft.server.route_table import ROUTES
from weft.server.router import ApiRoute

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def document_of_all() -> dict[str, Any]:
    """The document, made once for the tests of all routes."""
    return openapi_document(ROUTES)


@functools.cache
def claimed_by_tests() -> set[str]:
    """The operations that tests of the server and of agents say to cover; ``covers`` itself makes sure that they do."""
    found: set[str] = set()
    for path in [*HERE.glob("test_*.py"), *HERE.parent.glob("agents/test_*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "covers":
                found |= {
                    arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
                }
    return found


def test_every_operation_of_the_document_has_a_test(document_of_all: dict[str, Any]) -> None:
    operations = {one["operationId"] for path in document_of_all["paths"].values() for one in path.values()}

    assert operations == {route.name for route in ROUTES}
    assert operations - claimed_by_tests() == set()
    assert claimed_by_tests() - operations == set()


def test_every_name_and_every_place_stands_once() -> None:
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_every_schema_of_the_document_is_one(document_of_all: dict[str, Any]) -> None:
    whole = document_of_all
    for name, schema in whole["components"]["schemas"].items():
        jsonschema_rs.Draft202012Validator({**schema, "components": whole["components"]})
        assert schema.get("title", name)
    for path in whole["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", []):
                jsonschema_rs.meta.validate(parameter["schema"])


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_write_takes_a_key_and_says_what_it_takes_and_every_list_pages(
    document_of_all: dict[str, Any], route: ApiRoute
) -> None:
    operation = document_of_all["paths"][route.path][route.method.lower()]
    names = {(parameter["in"], parameter["name"]) for parameter in operation.get("parameters", [])}
    if route.is_write:
        assert ("header", "Idempotency-Key") in names
        assert "requestBody" in operation
        assert "409" in operation["responses"]
    if route.name.startswith("list") and route.name != "listStreams":
        assert ("query", "limit") in names
        assert names & {("query", "cursor"), ("query", "after")}
    assert {("path", name) for name in route.parameters} <= names


def test_unknown_fields_are_refused_by_every_body() -> None:
    schemas = openapi_document(ROUTES)["components"]["schemas"]
    for route in ROUTES:
        if route.body not in (None, msgspec.Raw):
            assert schemas[route.body.__name__]["additionalProperties"] is False, route.name


def test_the_body_of_new_steps_has_an_example_that_can_be_registered() -> None:
    schemas = openapi_document(ROUTES)["components"]["schemas"]
    (example,) = schemas["StepsDocument"]["properties"]["document"]["examples"]

    assert schemas["StepsDocument"]["required"] == ["document"]
    assert weft.App("memory://").steps(example) == ["rate"]

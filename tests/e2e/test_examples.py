"""The examples can be run one after the other in one folder, and use only what there is."""

import ast
import re
from collections import Counter
from pathlib import Path

import weft

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def test_no_two_examples_use_the_same_id() -> None:
    ids = Counter(
        found for path in EXAMPLES for found in set(re.findall(r'app\.run\([^\n]*\bid="([^"]+)"', path.read_text()))
    )
    assert [run for run, count in ids.items() if count > 1] == []


def test_examples_call_only_methods_that_an_app_has() -> None:
    called = {
        (path.name, node.attr)
        for path in EXAMPLES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "app"
    }
    assert [(file, name) for file, name in sorted(called) if name not in dir(weft.App("memory://"))] == []

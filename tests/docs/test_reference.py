"""The reference has every public name, and something to say about each."""

import ast
import inspect
import re
from importlib import import_module
from types import ModuleType

import pytest

import weft
import weft.testing
from tests.docs.reference import ALIASES, INTERNAL, LOOP, SECTIONS, all_members, members, reference_pages, summary

CLASSES = [
    pytest.param(thing, id=f"{module.__name__}.{name}")
    for module in (weft, weft.testing)
    for name in module.__all__
    if inspect.isclass(thing := getattr(module, name)) and not issubclass(thing, BaseException) and name != LOOP
]


@pytest.mark.parametrize("module", [weft, weft.testing], ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module: ModuleType) -> None:
    pages = reference_pages()
    listed = re.findall(rf"`{re.escape(module.__name__)}\.(\w+)`", pages["reference.md"])
    assert sorted(set(module.__all__) - set(listed)) == [], "give it a place in SECTIONS of tests/docs/reference.py"


def test_every_name_is_the_one_that_type_checkers_see() -> None:
    """The package loads its names at first use, by searching modules that may import others of the same name."""
    imports = [node for node in ast.walk(ast.parse(inspect.getsource(weft))) if isinstance(node, ast.ImportFrom)]
    homes = {name.name: str(node.module) for node in imports for name in node.names if "weft." in str(node.module)}
    assert sorted(homes) == sorted(weft.__all__)
    wrong = [
        name
        for name, home in homes.items()
        if name not in ALIASES and getattr(weft, name) is not getattr(import_module(home), name)
    ]
    assert wrong == []


def test_an_app_completes_the_names_that_the_reference_has() -> None:
    assert sorted(members(weft.App)) == [name for name in dir(weft.App("memory://")) if not name.startswith("_")]


def test_every_name_has_one_place() -> None:
    placed = [name for names in SECTIONS.values() for name in names]
    assert len(placed) == len(set(placed))
    assert sorted(set(placed) - set(weft.__all__)) == []


@pytest.mark.parametrize("cls", CLASSES)
def test_every_public_member_says_what_it_does(cls: type) -> None:
    silent = [name for name, value in members(cls).items() if value is not None and not summary(value)]
    assert silent == [], "write a docstring, or name it in INTERNAL of tests/docs/reference.py"


@pytest.mark.parametrize("name", INTERNAL)
def test_what_is_called_internal_exists(name: str) -> None:
    found = all_members(getattr(weft, name, None) or getattr(weft.testing, name))
    assert sorted(set(INTERNAL[name].split()) - set(found)) == []


def test_no_docstring_sends_the_reader_elsewhere() -> None:
    assert [name for name, text in reference_pages().items() if "See the module" in text] == []


def test_aliases_are_public() -> None:
    assert sorted(set(ALIASES) - set(weft.__all__)) == []

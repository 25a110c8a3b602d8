"""The whole project keeps the rules of the house, and each rule finds what is planted for it."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.style import rules

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "weft"
# Made, fetched, or kept by tools: not written here.
FOREIGN = {"build", "dist", "node_modules", "__pycache__"}
# The surface that users type may have as many named options as they need.
SURFACE = (SRC / "authoring", SRC / "cli", SRC / "__init__.py")


def python_files(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py") if not FOREIGN & set(path.parts))


def written_files(folder: Path = ROOT) -> Iterator[Path]:
    """Every file a person wrote; hidden directories other than the pipeline's belong to tools."""
    for path in sorted(folder.iterdir()):
        if path.is_file():
            if path.name != ".git":  # in a worktree it is a file of git's own
                yield path
        elif path.name not in FOREIGN and (not path.name.startswith(".") or path.name == ".ci"):
            yield from written_files(path)


def complaints(paths: list[Path], check: Callable[[Path, str], list[str]]) -> str:
    found = [
        f"{path.relative_to(ROOT)}:{complaint}" for path in paths for complaint in check(path, path.read_text("utf-8"))
    ]
    return "\n".join(found)


EVERYWHERE = (ROOT / "src", ROOT / "tests", ROOT / "bench")
TREE_RULES = ("long_functions", "many_parameters", "empty_names", "missing_docstring", "impure", "wide_ports")


@cache
def on_trees() -> dict[str, dict[Path, list[str]]]:
    """What each rule about trees says of each file; a file is parsed once for all of them."""
    said: dict[str, dict[Path, list[str]]] = {rule: {} for rule in TREE_RULES}
    for path in python_files(*EVERYWHERE):
        tree = ast.parse(path.read_text("utf-8"))
        said["long_functions"][path] = rules.long_functions(tree)
        if path.is_relative_to(SRC):
            said["many_parameters"][path] = rules.many_parameters(tree)
            said["empty_names"][path] = rules.empty_names(path.stem, tree)
            said["missing_docstring"][path] = rules.missing_docstring(tree)
        if path.is_relative_to(SRC / "core"):
            said["impure"][path] = rules.impure(tree)
        if path.is_relative_to(SRC / "ports"):
            said["wide_ports"][path] = rules.wide_ports(tree)
    return said


def by_tree(rule: str, paths: list[Path]) -> str:
    found = on_trees()[rule]
    return "\n".join(f"{path.relative_to(ROOT)}:{complaint}" for path in paths for complaint in found[path])


def test_no_file_is_longer_than_the_stop() -> None:
    assert not complaints(python_files(*EVERYWHERE), lambda _path, source: rules.long_file(source))


def test_no_function_is_longer_than_the_stop() -> None:
    assert not by_tree("long_functions", python_files(*EVERYWHERE))


def test_no_inner_function_takes_more_than_five_parameters() -> None:
    inner = [path for path in python_files(SRC) if not any(path.is_relative_to(place) for place in SURFACE)]
    assert not by_tree("many_parameters", inner)


def test_every_name_says_something() -> None:
    assert not by_tree("empty_names", python_files(SRC))


def test_every_module_says_what_it_promises() -> None:
    assert not by_tree("missing_docstring", python_files(SRC))


def test_the_core_is_pure() -> None:
    assert not by_tree("impure", python_files(SRC / "core"))


def test_nothing_is_left_unfinished() -> None:
    assert not complaints(python_files(SRC), lambda _path, source: rules.unfinished(source))


def test_every_port_is_small() -> None:
    assert not by_tree("wide_ports", python_files(SRC / "ports"))


def test_no_file_names_a_directory_of_one_machine() -> None:
    found = []
    for path in written_files():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}:{complaint}" for complaint in rules.machine_paths(text)]
    assert not found


def test_the_lock_file_names_only_the_public_registry() -> None:
    lock = (ROOT / "uv.lock").read_text("utf-8")
    hosts = set(re.findall(r'(?:registry|url) = "https?://([^/"]+)', lock))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_the_rules_look_at_real_files() -> None:
    """A wrong path would let every test above pass with nothing looked at."""
    assert SRC / "errors.py" in python_files(SRC)
    assert python_files(SRC / "core")
    assert Path(__file__) in list(written_files())


def function_of(lines: int, parameters: str = "") -> str:
    return f"def grow({parameters}):\n" + "    pass\n" * (lines - 1)


def test_a_file_one_line_above_the_stop_is_found() -> None:
    assert rules.long_file("\n" * 601)
    assert not rules.long_file("\n" * 600)


def test_a_function_one_line_above_the_stop_is_found() -> None:
    assert rules.long_functions(ast.parse(function_of(71)))
    assert rules.long_functions(ast.parse("async " + function_of(71)))
    assert not rules.long_functions(ast.parse(function_of(70)))


@pytest.mark.parametrize("parameters", ["a, b, c, d, e, f", "a, /, b, *, c, d, e, f", "self, a, b, c, d, e, f"])
def test_a_sixth_parameter_is_found(parameters: str) -> None:
    assert rules.many_parameters(ast.parse(function_of(2, parameters)))


@pytest.mark.parametrize("source", [function_of(2, "self, a, b, c, d, e"), "def __init__(self, a, b, c, d, e, f): ..."])
def test_five_parameters_and_constructors_are_accepted(source: str) -> None:
    assert not rules.many_parameters(ast.parse(source))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("utils", ""),
        ("retry_helpers", ""),
        ("run", "class TaskManager: ..."),
        ("run", "def handle_event(): ..."),
        ("run", "class Run:\n    async def _process(self): ..."),
        ("run", "def do_it(): ..."),
        ("run", "def retry_helper(): ..."),
    ],
)
def test_a_name_that_says_nothing_is_found(module: str, source: str) -> None:
    assert rules.empty_names(module, ast.parse(source))


@pytest.mark.parametrize(
    "source", ["class RunHandle: ...", "def processes(): ...", "def done(): ...", "class ABC: ..."]
)
def test_names_that_only_look_alike_are_accepted(source: str) -> None:
    assert not rules.empty_names("handles", ast.parse(source))


def test_a_module_without_a_promise_is_found() -> None:
    assert rules.missing_docstring(ast.parse("x = 1"))
    assert not rules.missing_docstring(ast.parse('"""Promise."""'))


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio",
        "import os.path",
        "from time import monotonic",
        "def f():\n    import random",
        "import json, uuid",
        "datetime.now(UTC)",
        "print(1)",
        "hash('a')",
        "for x in set(y): ...",
        "[x for x in {1, 2}]",
        "for x in {y for y in z}: ...",
    ],
)
def test_an_impure_core_is_found(source: str) -> None:
    assert rules.impure(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    ["from weft.core import time", "from . import os", "import json", "x in {1, 2}", "for x in sorted({1}): ..."],
)
def test_a_pure_core_is_accepted(source: str) -> None:
    assert not rules.impure(ast.parse(source))


@pytest.mark.parametrize("source", ["x = 1  # TODO: later", "# FIXME", "raise NotImplementedError"])
def test_something_unfinished_is_found(source: str) -> None:
    assert rules.unfinished(source)
    assert not rules.unfinished("return NotImplemented  # no todo")


@pytest.mark.parametrize("base", ["Protocol", "Protocol[T]", "typing.Protocol"])
def test_a_port_with_a_tenth_method_is_found(base: str) -> None:
    def port(methods: int) -> ast.Module:
        return ast.parse(f"class Store({base}):\n" + "".join(f"    def m{i}(self): ...\n" for i in range(methods)))

    assert rules.wide_ports(port(10))
    assert not rules.wide_ports(port(9))


@pytest.mark.parametrize("directory", ["work", "root", "home/anna", "Users/anna"])
def test_a_directory_of_one_machine_is_found(directory: str) -> None:
    assert rules.machine_paths(f'open("/{directory}/x")')
    assert rules.machine_paths(f"/{directory}/x")
    assert not rules.machine_paths(f"https://example.org/{directory}/x and build/{directory}/")

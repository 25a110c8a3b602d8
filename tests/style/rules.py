"""The rules of the house that a machine can check. Pure: source text in, complaints out.

A complaint reads ``line: what is wrong``. Limits are stops, not aims: files of 100 to 300 lines and functions of
up to 40 lines read best.
"""

import ast
import re
from collections.abc import Iterator

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 5
PORT_METHODS_MAX = 9

Function = ast.FunctionDef | ast.AsyncFunctionDef

# A word that fits everything tells nothing. As file names and last words of classes ...
EMPTY_NOUNS = frozenset({"util", "utils", "helper", "helpers", "manager", "handler", "processor", "misc", "common"})
# ... and as the verb of a function.
EMPTY_VERBS = frozenset({"handle", "process", "manage", "do", "helper", "utils"})

# What gives another answer on another machine, at another time, or waits for the world.
IMPURE_MODULES = frozenset({
    "apsw", "asyncio", "concurrent", "logging", "multiprocessing", "os", "random", "secrets", "socket", "sqlite3",
    "subprocess", "tempfile", "threading", "time", "uuid", "uuid_utils",
})  # fmt: skip
IMPURE_CALLS = frozenset({"__import__", "breakpoint", "hash", "input", "open", "print"})
CLOCK_READINGS = frozenset({"now", "today", "utcnow"})

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
# A directory of one person's machine, standing for itself and not inside a longer path or an address.
MACHINE_PATH = re.compile(r"(?<![\w.$})~*-])/(?:work|root|(?:home|Users)/[A-Za-z][\w-]*)/")


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Walk through the statements alone: most nodes of a tree are expressions, and no function or class is in one."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            parts = getattr(node, field, ())
            yield from (part for part in parts if isinstance(part, ast.stmt))
            todo += parts


def functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in statements(tree) if isinstance(node, Function))


def long_file(source: str) -> list[str]:
    lines = source.count("\n")
    return [f"{lines}: the file has {lines} lines, {FILE_LINES_MAX} is a stop"] if lines > FILE_LINES_MAX else []


def long_functions(tree: ast.Module) -> list[str]:
    return [
        f"{node.lineno}: {node.name} has {lines} lines, {FUNCTION_LINES_MAX} is a stop"
        for node in functions(tree)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]


def many_parameters(tree: ast.Module) -> list[str]:
    """More than five parameters make a value. Constructors are exempt: they are how a value is made."""
    return [
        f"{node.lineno}: {node.name} has {count} parameters, {PARAMETERS_MAX} is a stop"
        for node in functions(tree)
        if node.name not in {"__init__", "__new__"} and (count := _parameter_count(node)) > PARAMETERS_MAX
    ]


def _parameter_count(node: Function) -> int:
    positional = [*node.args.posonlyargs, *node.args.args]
    if positional and positional[0].arg in {"self", "cls"}:
        positional = positional[1:]
    return len(positional) + len(node.args.kwonlyargs)


GIVEN_NAMES = {
    *("call_exception_handler", "set_exception_handler", "get_exception_handler", "add_signal_handler"),
    "handle_async_request",
}
"""What asyncio calls the parts of a loop is not ours to choose."""


def empty_names(module: str, tree: ast.Module) -> list[str]:
    found = [f"1: the file name {module} says nothing"] if EMPTY_NOUNS & set(module.split("_")) else []
    for node in statements(tree):
        if isinstance(node, ast.ClassDef):
            words = re.findall(r"[A-Z][a-z]*", node.name)
            if words and words[-1].lower() in EMPTY_NOUNS:
                found.append(f"{node.lineno}: the class name {node.name} says nothing")
        elif isinstance(node, Function):
            words = node.name.strip("_").split("_")
            if node.name in GIVEN_NAMES:
                continue
            if words[0] in EMPTY_VERBS or words[-1] in EMPTY_NOUNS:
                found.append(f"{node.lineno}: the function name {node.name} says nothing")
    return found


def missing_docstring(tree: ast.Module) -> list[str]:
    return [] if ast.get_docstring(tree) else ["1: the module does not say what it promises"]


def unfinished(source: str) -> list[str]:
    return [f"{number}: {text} says that something is unfinished" for number, text in _found(UNFINISHED, source)]


def machine_paths(source: str) -> list[str]:
    return [f"{number}: {text} exists on one machine only" for number, text in _found(MACHINE_PATH, source)]


def _found(pattern: re.Pattern[str], source: str) -> Iterator[tuple[int, str]]:
    return ((source.count("\n", 0, match.start()) + 1, match[0]) for match in pattern.finditer(source))


def wide_ports(tree: ast.Module) -> list[str]:
    return [
        f"{node.lineno}: the port {node.name} has {count} methods, {PORT_METHODS_MAX} is a stop"
        for node in statements(tree)
        if isinstance(node, ast.ClassDef)
        and any("Protocol" in ast.unparse(base) for base in node.bases)
        and (count := sum(_is_method(part) for part in node.body)) > PORT_METHODS_MAX
    ]


def _is_method(part: ast.stmt) -> bool:
    """A property names a part of a port; it asks nothing of its implementer but to have it."""
    return isinstance(part, Function) and "property" not in {ast.unparse(one) for one in part.decorator_list}


def impure(tree: ast.Module) -> list[str]:
    """What the core may not do: read a clock, draw, touch the world, or depend on the order of a set."""
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case _:
                modules = []
                found += _impure_act(node)
        found += [f"{_line(node)}: imports {name}" for name in modules if name.split(".")[0] in IMPURE_MODULES]
    return found


def _impure_act(node: ast.AST) -> list[str]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
            return [f"{_line(node)}: calls {name}"]
        case ast.Call(func=ast.Attribute(attr=name)) if name in CLOCK_READINGS:
            return [f"{_line(node)}: reads the clock with {name}()"]
        case (
            ast.For(iter=ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")) as unordered)
            | ast.comprehension(
                iter=ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")) as unordered
            )
        ):
            return [f"{_line(unordered)}: iterates over a set"]
        case _:
            return []


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))

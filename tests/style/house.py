"""Measure the shape of the code: knots, the host's reach, rows per style, questions for the style, names, traces.

``python -m tests.style.house`` prints the figures beside their ceilings; with ``--lower`` it writes those that got
better into ``house.json``. ``test_house.py`` fails when a figure is above its ceiling, and asks to lower it when below.

Every figure is an approximation that reads source text; the function that counts it says which one. Smaller is better
for all of them.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.style import house_traces

SRC = Path(__file__).parents[2] / "src" / "weft"
CEILINGS = Path(__file__).with_name("house.json")

LAYERED = ("core", "runtime", "stores", "server")
STYLES = ("code", "graph", "goal")
TABLES = frozenset({"DECIDE", "EVOLVE", "EFFECTS", "MAIL"})
HOSTS = frozenset({"Engine", "Host", "LocalHost"})
COMPOSITION = frozenset({"weft.runtime.programs", "weft.runtime.host"})
"""Modules that build the parts of a run or of a host: these have to know the style."""

Nodes = list[ast.AST]
Trees = Mapping[str, Nodes]
"""The nodes of each module, by its dotted name."""
Edges = dict[str, set[str]]


@cache
def source_trees() -> Trees:
    """Parse every module of Weft."""
    return {_module_name(path): nodes_of(path.read_text("utf-8")) for path in sorted(SRC.rglob("*.py"))}


LEAVES = (ast.Name, ast.Constant, ast.expr_context)
"""Most nodes are one of these, and no figure looks for them but below others."""


def nodes_of(source: str) -> Nodes:
    """Return the nodes of a module but the leaves, outer ones first: ``ast.walk``, done once for all figures."""
    found: Nodes = [ast.parse(source)]
    for node in found:
        for value in vars(node).values():
            if isinstance(value, list):
                found += [part for part in value if isinstance(part, ast.AST) and not isinstance(part, LEAVES)]
            elif isinstance(value, ast.AST) and not isinstance(value, LEAVES):
                found.append(value)
    return found


def _module_name(path: Path) -> str:
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def group_of(module: str) -> str:
    """Return the package that a module is counted under."""
    package = (*module.split("."), "")[1]
    return package if package in LAYERED else "elsewhere"


# --- import knots -----------------------------------------------------------------------------------------------------


def imports(trees: Trees) -> Edges:
    """Return which modules each module imports, ``TYPE_CHECKING`` blocks and imports inside functions included.

    The package that an import passes on its way to a module is not counted.
    """
    edges: Edges = {module: set() for module in trees}
    for module, tree in trees.items():
        for node in tree:
            if isinstance(node, ast.Import):
                edges[module] |= {name.name for name in node.names if name.name in trees}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for name in node.names:
                    target = f"{node.module}.{name.name}"
                    edges[module] |= {target if target in trees else node.module} & trees.keys()
        edges[module].discard(module)
    return edges


def knots(edges: Edges) -> list[list[str]]:
    """Return the groups of modules that all import each other, directly or not: largest first.

    Modules that import no other of those left, or that none of those left imports, are in no knot; what remains is
    small enough to compare what each reaches.
    """
    left = set(edges)
    while True:
        imported = {target for module in left for target in edges[module] & left}
        kept = {module for module in left & imported if edges[module] & left}
        if kept == left:
            break
        left = kept
    reached = {module: _reachable(edges, module, left) for module in left}
    found = {
        frozenset(other for other in there if module in reached[other])
        for module, there in reached.items()
        if module in there
    }
    return sorted((sorted(knot) for knot in found), key=lambda knot: (-len(knot), knot))


def _reachable(edges: Edges, start: str, among: set[str]) -> set[str]:
    seen: set[str] = set()
    todo = list(edges[start] & among)
    while todo:
        module = todo.pop()
        if module not in seen:
            seen.add(module)
            todo += edges[module] & among
    return seen


# --- the host ---------------------------------------------------------------------------------------------------------


def host_members(trees: Trees) -> set[str]:
    """Return the members of the host that other modules of Weft reach.

    The host is a name or an attribute that is annotated with the host's class, or assigned from one that is; a bag with
    all of its parts is the host under another name. Names count in their module, attributes in all modules. Not seen:
    ``getattr``, and ``self`` in a subclass.
    """
    users = {module: tree for module, tree in trees.items() if not _defines(tree, HOSTS)}
    attributes = {name for tree in users.values() for name in _annotated(tree, ast.Attribute)}
    names = {module: _annotated(tree, ast.Name) for module, tree in users.items()}
    assigned = {module: list(_assignments(tree)) for module, tree in users.items()}
    known = -1
    while known != (known := len(attributes) + sum(map(len, names.values()))):
        for module, pairs in assigned.items():
            for target, value in pairs:
                if _is_host(value, names[module], attributes):
                    if isinstance(target, ast.Name):
                        names[module].add(target.id)
                    elif isinstance(target, ast.Attribute):
                        attributes.add(target.attr)
    return {
        node.attr
        for module, tree in users.items()
        for node in tree
        if isinstance(node, ast.Attribute) and _is_host(node.value, names[module], attributes)
    }


def _defines(tree: Nodes, classes: frozenset[str]) -> bool:
    return any(isinstance(node, ast.ClassDef) and node.name in classes for node in tree)


def _is_host(node: ast.expr, names: set[str], attributes: set[str]) -> bool:
    return (isinstance(node, ast.Name) and node.id in names) or (
        isinstance(node, ast.Attribute) and node.attr in attributes
    )


def _names_host(annotation: ast.expr | None) -> bool:
    if annotation is None:
        return False
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    return isinstance(text, str) and any(part.strip() in HOSTS for part in text.split("|"))


def _annotated(tree: Nodes, kind: type[ast.Name | ast.Attribute]) -> set[str]:
    """Return the names (parameters, variables) or the attributes (fields, properties) annotated with the host."""
    found: set[str] = set()
    for node in tree:
        match node:
            case ast.arg(arg=name, annotation=annotation) if kind is ast.Name and _names_host(annotation):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name) as target, annotation=annotation):
                if isinstance(target, kind) and _names_host(annotation):
                    found.add(name)
            case ast.FunctionDef(name=name, returns=returns) if kind is ast.Attribute and _names_host(returns):
                if any(ast.unparse(one) == "property" for one in node.decorator_list):
                    found.add(name)
    return found


def _assignments(tree: Nodes) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in tree:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                yield from zip(targets, values, strict=False)
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                yield target, value


# --- styles -----------------------------------------------------------------------------------------------------------


def repeated_rows(trees: Trees) -> list[str]:
    """Return the rows of the decide, evolve, effects and mail tables that more than one style writes.

    A table is a dict literal with one of these names. Rows that a style takes over with ``**`` are not written there.
    """
    styles: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        style = (*module.split("."), "", "")[2] if module.startswith("weft.core.") else ""
        if style in STYLES:
            for target, value in _assignments(tree):
                table = target.id.strip("_") if isinstance(target, ast.Name) else ""
                if table in TABLES and isinstance(value, ast.Dict):
                    for key in filter(None, value.keys):
                        styles[f"{table} {ast.unparse(key).rpartition('.')[2]}"].add(style)
    return sorted(row for row, writers in styles.items() if len(writers) > 1)


def style_questions(trees: Trees) -> list[str]:
    """Return the places outside the core and composition that ask for the style of a run.

    These are ``isinstance`` and ``case`` with a machine, state or program of a style, and comparisons of a ``style``
    with a constant.
    """
    return [
        f"{module}:{getattr(node, 'lineno', 0)}"
        for module, tree in trees.items()
        if not module.startswith("weft.core") and module not in COMPOSITION
        for node in tree
        if _asks_style(node)
    ]


def _asks_style(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            return any(isinstance(part, ast.Name) and _is_styled(part.id) for part in ast.walk(kinds))
        case ast.MatchClass(cls=ast.Name(id=name)):
            return _is_styled(name)
        case ast.Compare(left=left, comparators=[right]):
            return any(_is_style(one) and _is_constant(other) for one, other in ((left, right), (right, left)))
        case ast.Match(subject=subject):
            return _is_style(subject)
        case _:
            return False


def _is_styled(name: str) -> bool:
    return name.startswith(("Code", "Graph", "Goal")) and name.endswith(("Machine", "State", "Program"))


def _is_style(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "style") or (
        isinstance(node, ast.Attribute) and node.attr == "style"
    )


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.List(elts=parts):
            return all(_is_constant(part) for part in parts)
        case _:
            return False


# --- stores and names -------------------------------------------------------------------------------------------------


def judging_modules(trees: Trees) -> list[str]:
    """Return the modules of the stores that name a refusal of an append or of mail: each judges, or repeats a rule.

    SQL is not counted: the contract suite compares it with ``stores/judge.py``.
    """
    return [
        module
        for module, tree in trees.items()
        if module.startswith("weft.stores.")
        and any(
            isinstance(node, ast.Attribute)
            and ast.unparse(node.value) in {"Outcome", "Sent"}
            and node.attr != "ACCEPTED"
            for node in tree
        )
    ]


def repeated_class_names(trees: Trees) -> dict[str, list[str]]:
    """Return the class names that more than one module defines, with these modules."""
    places: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        for node in tree:
            if isinstance(node, ast.ClassDef):
                places[node.name].add(module)
    return {name: sorted(modules) for name, modules in sorted(places.items()) if len(modules) > 1}


# --- the table --------------------------------------------------------------------------------------------------------


@cache
def figures() -> dict[str, int]:
    """Measure everything."""
    trees = source_trees()
    found = knots(imports(trees))
    knotted = Counter(group_of(module) for knot in found for module in knot)
    start = house_traces.trace_http_start()
    return {
        **{f"modules in import knots: {group}": knotted[group] for group in (*LAYERED, "elsewhere")},
        "modules in the largest import knot": max(map(len, found), default=0),
        "members of the host used from other files": len(host_members(trees)),
        "rows written by more than one style": len(repeated_rows(trees)),
        "places where the shell asks for the style": len(style_questions(trees)),
        "modules that judge an append": len(judging_modules(trees)),
        "class names with more than one meaning": len(repeated_class_names(trees)),
        "files that a start over HTTP passes": len(start.whole.paths),
        "package switches of a start over HTTP": start.whole.switches,
        "files that a start over HTTP passes before its run": len(start.way_in.paths),
        "package switches of a start over HTTP before its run": start.way_in.switches,
        "store calls of a message from another process": len(house_traces.calls_of_foreign_message()),
    }


def ceilings() -> dict[str, int]:
    return {str(name): int(figure) for name, figure in json.loads(CEILINGS.read_text("utf-8")).items()}


def details() -> Iterable[str]:
    """Say where the figures come from, for whoever wants to lower them."""
    trees = source_trees()
    for knot in knots(imports(trees)):
        yield f"knot of {len(knot)}: {', '.join(knot)}"
    yield f"members of the host: {', '.join(sorted(host_members(trees)))}"
    yield f"rows: {', '.join(repeated_rows(trees))}"
    yield f"style questions: {', '.join(style_questions(trees))}"
    yield f"judges: {', '.join(judging_modules(trees))}"
    for name, modules in repeated_class_names(trees).items():
        yield f"class {name}: {', '.join(modules)}"
    yield f"files of a start: {', '.join(sorted(house_traces.trace_http_start().whole.paths))}"
    yield f"store calls of a message: {', '.join(house_traces.calls_of_foreign_message())}"


def main(arguments: list[str]) -> None:
    """Print the table; ``--details`` says where each figure comes from, ``--lower`` writes what got better."""
    known = ceilings() if CEILINGS.exists() else {}
    now = figures()
    for name, figure in now.items():
        print(f"{name:<52} {figure:>4}  ceiling {known.get(name, figure)}")
    if "--details" in arguments:
        print("", *details(), sep="\n")
    if "--lower" in arguments:
        lowered = {name: min(figure, known.get(name, figure)) for name, figure in now.items()}
        CEILINGS.write_text(json.dumps(lowered, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

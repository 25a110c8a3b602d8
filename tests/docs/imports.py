"""Who may import whom, written from the contracts in pyproject.toml and the docstrings of the packages."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BEGIN = "<!-- Imports: written by `python -m tests.docs.generated` from pyproject.toml. -->"
END = "<!-- End of imports. -->"


def with_imports(page: str) -> str:
    """The page with the part between the two marks written anew."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"the page has lost the line {BEGIN}"
    assert end, f"the page has lost the line {END}"
    return "\n".join([f"{before}{BEGIN}", "", *imports(), "", f"{END}{after}"])


def imports() -> Iterator[str]:
    """The order of the packages, what each is, and the other contracts."""
    contracts = read_contracts()
    order, *inner = [contract for contract in contracts if contract["type"] == "layers"]
    assert order["containers"] == ["weft"]
    layers = [packages(layer) for layer in reversed(order["layers"])]
    layers = [present for layer in layers if (present := [name for name in layer if is_there(name)])]
    yield from (f"    {' ← '.join(', '.join(layer) for layer in layers)}", "")
    yield from ("| package | what it is |", "|---|---|")
    yield from (f"| `{name}` | {purpose(name)} |" for layer in layers for name in layer)
    yield ""
    for contract in inner:
        parts = " ← ".join(", ".join(packages(layer)) for layer in reversed(contract["layers"]))
        yield f"- Inside `{', '.join(strip(name) for name in contract['containers'])}`: {parts}."
    for contract in contracts:
        if contract["type"] == "forbidden":
            names = ", ".join(f"`{name}`" for name in contract["forbidden_modules"])
            yield f"- `{', '.join(strip(name) for name in contract['source_modules'])}` never imports {names}."


def read_contracts() -> list[dict[str, Any]]:
    """The contracts that `make check` holds."""
    return list(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"])


def packages(layer: str) -> list[str]:
    return [name.strip(" ()") for name in re.split(r"[|:]", layer)]


def strip(name: str) -> str:
    return name.removeprefix("weft.")


def is_there(name: str) -> bool:
    return source(name).exists()


def source(name: str) -> Path:
    path = ROOT / "src" / "weft" / name.replace(".", "/")
    return path / "__init__.py" if (path / "__init__.py").exists() else path.with_suffix(".py")


def purpose(name: str) -> str:
    """The first line of the package's docstring."""
    text = ast.get_docstring(ast.parse(source(name).read_text())) or ""
    return text.partition("\n")[0].replace("``", "`").replace("|", "\\|")

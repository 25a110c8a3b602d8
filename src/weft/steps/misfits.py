"""Describe a value of the wrong type: where it is, what it must be, and what it is."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_JSON_KINDS: Final[dict[type, str]] = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_NAMES: Final[dict[str, str]] = {
    "bool": "a boolean",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "datetime": "a date and time (ISO 8601)",
    "date": "a date (ISO 8601)",
    "time": "a time (ISO 8601)",
    "duration": "a duration (ISO 8601)",
    "uuid": "a UUID",
    "decimal": "a decimal number",
    "bytes": "bytes (base64)",
}
_AT = re.compile(r"(?s)(.*?)(?: - at `(?:key` in `)?\$(.*)`)?")
_EXPECTED = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_PYDANTIC = re.compile(r"Input should be (.*)")
_VALID = re.compile(r"\ba valid (\w)")


class Misfit(ValueError):
    """Raised for a value of the wrong type. It is a ValueError, because decoders then add the path to it."""

    def __init__(self, path: str, problem: str, got: str = "") -> None:
        super().__init__(problem)
        self.path = path.removeprefix(".")
        self.problem = problem
        self.got = got

    def below(self, place: str) -> Misfit:
        """Return the misfit with its path prefixed by ``place``."""
        return Misfit(_join(place, self.path), self.problem, self.got)

    def sentence(self, what: str) -> str:
        """Return a sentence about a value, for example "charge returned a string; it must be an integer."."""
        field = f" (field `{self.path}`)" if self.path else ""
        if self.got:
            return f"{what} {self.got}{field}; it {self.problem}."
        return f"{what} a value that is not valid{field}: {self.problem}."

    def clause(self) -> str:
        """Return a clause about an argument, for example "cents must be an integer, got a string"."""
        if self.got:
            return f"{self.path or 'it'} {self.problem}, got {self.got}"
        return f"{self.path}: {self.problem}" if self.path else self.problem


def misfit_of(error: BaseException, raw: bytes) -> Misfit:
    """Convert a decoder's error about ``raw``. Errors from the user's own validators keep their text."""
    if isinstance(error, Misfit):
        return error
    if hasattr(error, "errors") and hasattr(error, "error_count"):
        return _of_pydantic(error, raw)
    if not isinstance(error, Exception):
        return Misfit("", f"its validator raised {type(error).__name__}")
    text, at = _split(str(error))
    if isinstance(error.__cause__, Misfit):
        return error.__cause__.below(at)
    found = _EXPECTED.fullmatch(text)
    if found is None:
        return Misfit(at, text or type(error).__name__)
    return Misfit(at, f"must be {_either(found[1])}", _either(found[2]))


def json_kind(value: Any) -> str:
    """Return the kind of a JSON value: "an integer"."""
    return _JSON_KINDS.get(type(value), f"a {type(value).__name__}")


def _split(text: str) -> tuple[str, str]:
    found = _AT.fullmatch(text)
    assert found is not None  # the pattern matches any text
    return found[1].rstrip("."), (found[2] or "").replace("[...]", "[…]")


def _join(outer: str, inner: str) -> str:
    return f"{outer}{inner}" if not inner or inner.startswith("[") else f"{outer}.{inner}"


def _either(names: str) -> str:
    kinds = [_NAMES.get(name, name) for name in names.split(" | ")]
    return " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)


def _of_pydantic(error: Any, raw: bytes) -> Misfit:
    """Convert the first pydantic error and all others about the same field, such as those for members of a union."""
    problems = error.errors(include_url=False, include_context=False)
    if problems[0]["type"] == "json_invalid":
        return Misfit("", problems[0]["msg"])
    root = msgspec.json.decode(raw)
    path = _real_path(problems[0], root)
    here = [problem for problem in problems if _real_path(problem, root) == path]
    musts = [_PYDANTIC.fullmatch(problem["msg"]) for problem in here]
    if not all(musts):
        text = here[0]["msg"]
        return Misfit(path, text[:1].lower() + text[1:])
    wanted = dict.fromkeys(_VALID.sub(_article, must[1]) for must in musts if must)
    return Misfit(path, f"must be {' or '.join(wanted)}", json_kind(here[0]["input"]))


def _real_path(problem: Any, root: Any) -> str:
    """Return the path in the JSON. pydantic's own path also names the members of unions."""
    path, node = "", root
    for part in problem["loc"]:
        if isinstance(node, dict) and part in node:
            path, node = f"{path}.{part}", node[part]
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            path, node = f"{path}[{part}]", node[part]
    return f"{path}.{problem['loc'][-1]}" if problem["type"] == "missing" else path


def _article(found: re.Match[str]) -> str:
    return f"an {found[1]}" if found[1] in "aeiou" else f"a {found[1]}"

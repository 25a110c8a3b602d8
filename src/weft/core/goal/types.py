"""Types of facts: words such as `string`, `integer`, `string[]`, or JSON Schema. Pure.

`agree` tells whether two declarations of one fact are compatible, `misfit` what is wrong with a value. A missing type
means `any`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Type = str | dict[str, Any] | None
SchemaCheck = Callable[[dict[str, Any], bytes], str | None]

WORDS: Final = ("string", "number", "integer", "boolean", "object", "array", "null", "any")
_NOTES: Final = frozenset({"title", "description", "$schema", "examples"})
_BRANCHES: Final = ("anyOf", "oneOf")

_PYTHON: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def is_word(text: str) -> bool:
    """Tell whether a text is a type in short form: a word followed by any number of `[]`."""
    plain = text
    while plain.endswith("[]"):
        plain = plain[:-2]
    return plain in WORDS


def normal(declared: Type) -> str | dict[str, Any]:
    """Return the shortest spelling of a type. JSON Schema that is equivalent to a word becomes that word."""
    if declared is None:
        return "any"
    if isinstance(declared, str):
        return "array" if declared == "any[]" else declared
    said = {key: value for key, value in declared.items() if key not in _NOTES}
    if not said:
        return "any"
    word = said.get("type")
    if len(said) == 1 and isinstance(word, str) and is_word(word):
        return word
    if set(said) == {"type", "items"} and word == "array" and isinstance(said["items"], dict):
        item = normal(said["items"])
        if isinstance(item, str):
            return normal(f"{item}[]")
    return declared


def is_any(declared: Type) -> bool:
    """Tell whether a type allows every value."""
    return normal(declared) == "any"


def is_array(declared: Type) -> bool:
    """Tell whether the type allows only arrays."""
    return _bare(normal(declared)) == ["array"]


def may_be_array(declared: Type) -> bool:
    """Tell whether the type allows arrays."""
    return not {"any", "array"}.isdisjoint(_bare(normal(declared)))


def agree(one: Type, other: Type) -> bool:
    """Tell whether two declarations agree: equal, one is `any`, or one is the bare form of the other."""
    a, b = normal(one), normal(other)
    if a in (b, "any") or b == "any":
        return True
    if isinstance(a, str) and isinstance(b, str):
        return _words_agree(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return False
    schema, word = (a, b) if isinstance(a, dict) else (b, a)
    assert isinstance(word, str)
    return any(each == "any" or _words_agree(each, word) for each in _bare(schema))


def _words_agree(a: str, b: str) -> bool:
    if a == b or {a, b} == {"number", "integer"}:
        return True
    if a.endswith("[]") and b.endswith("[]"):
        return agree(a[:-2], b[:-2])
    return (a == "array" and b.endswith("[]")) or (b == "array" and a.endswith("[]"))


def _bare(declared: str | dict[str, Any]) -> list[str]:
    """Return the words that a type allows."""
    if isinstance(declared, str):
        return ["array"] if declared.endswith("[]") else [declared]
    word = declared.get("type")
    if isinstance(word, str):
        return [word]
    if isinstance(word, list):
        return [str(each) for each in word]
    for key in _BRANCHES:
        branches = declared.get(key)
        if isinstance(branches, list):
            return [bare for each in branches if isinstance(each, dict) for bare in _bare(normal(each))]
    return ["object"] if "properties" in declared else ["any"]


def narrower(one: Type, other: Type) -> Type:
    """Return the more specific of two declarations that agree."""
    a, b = normal(one), normal(other)
    if a == "any" or (isinstance(b, dict) and isinstance(a, str)):
        return b
    if isinstance(a, str) and isinstance(b, str) and b != "any" and _rank(b) > _rank(a):
        return b
    return a


def _rank(word: str) -> int:
    """Return how specific a word is among those that it agrees with."""
    depth = word.count("[]")
    return 2 * depth + (word.startswith("integer")) + (depth > 0 and not word.startswith("any"))


def misfit(declared: Type, value: Any, raw: bytes, check: SchemaCheck) -> str | None:
    """Return what is wrong with a value, or None. `raw` is the same value as JSON."""
    return unfit(normal(declared), value, raw, check)


def unfit(wanted: str | dict[str, Any], value: Any, raw: bytes, check: SchemaCheck) -> str | None:
    """Return what is wrong with a value, or None, for a type in its shortest spelling."""
    if isinstance(wanted, dict):
        return check(wanted, raw)
    return None if _fits(wanted, value) else f"{kind(value)} is not {_named(wanted)}"


def _fits(word: str, value: Any) -> bool:
    if word == "any":
        return True
    if word.endswith("[]"):
        return isinstance(value, list) and all(_fits(word[:-2], each) for each in value)
    if isinstance(value, bool):
        return word == "boolean"
    if word == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _PYTHON[word])


def _named(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def kind(value: Any) -> str:
    """Name the type of a value for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    for word in ("string", "number", "object", "array"):
        if isinstance(value, _PYTHON[word]):
            return _named(word)
    return type(value).__name__


def shown(declared: Type) -> str:
    """Name a type for a message."""
    word = normal(declared)
    return word if isinstance(word, str) else "a JSON Schema"

"""Types of facts: words like ``string``, ``integer`` or ``string[]``, or JSON Schema. Pure.

``types_agree`` compares two declarations of one fact, and ``type_error`` checks a value. A missing type means ``any``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.core.plurals import with_article

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
    """Return whether a text is a type in short form: a word followed by any number of ``[]``."""
    word = text
    while word.endswith("[]"):
        word = word[:-2]
    return word in WORDS


def normalize(declared: Type) -> str | dict[str, Any]:
    """Return the shortest spelling of a type. JSON Schema that is equivalent to a word becomes that word."""
    if declared is None:
        return "any"
    if isinstance(declared, str):
        return "array" if declared == "any[]" else declared
    relevant = {key: value for key, value in declared.items() if key not in _NOTES}
    if not relevant:
        return "any"
    word = relevant.get("type")
    if len(relevant) == 1 and isinstance(word, str) and is_word(word):
        return word
    if set(relevant) == {"type", "items"} and word == "array" and isinstance(relevant["items"], dict):
        item = normalize(relevant["items"])
        if isinstance(item, str):
            return normalize(f"{item}[]")
    return declared


def is_any(declared: Type) -> bool:
    """Return whether a type allows every value."""
    return normalize(declared) == "any"


def is_array(declared: Type) -> bool:
    """Return whether the type allows only arrays."""
    return _allowed_words(normalize(declared)) == ["array"]


def may_be_array(declared: Type) -> bool:
    """Return whether the type allows arrays."""
    return not {"any", "array"}.isdisjoint(_allowed_words(normalize(declared)))


def types_agree(one: Type, other: Type) -> bool:
    """Return whether two declarations agree: they are equal, one is ``any``, or one is the bare form of the other."""
    a, b = normalize(one), normalize(other)
    if a in (b, "any") or b == "any":
        return True
    if isinstance(a, str) and isinstance(b, str):
        return _words_agree(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return False
    schema, word = (a, b) if isinstance(a, dict) else (b, a)
    assert isinstance(word, str)
    return any(each == "any" or _words_agree(each, word) for each in _allowed_words(schema))


def _words_agree(a: str, b: str) -> bool:
    if a == b or {a, b} == {"number", "integer"}:
        return True
    if a.endswith("[]") and b.endswith("[]"):
        return types_agree(a[:-2], b[:-2])
    return (a == "array" and b.endswith("[]")) or (b == "array" and a.endswith("[]"))


def _allowed_words(declared: str | dict[str, Any]) -> list[str]:
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
            return [bare for each in branches if isinstance(each, dict) for bare in _allowed_words(normalize(each))]
    return ["object"] if "properties" in declared else ["any"]


def narrower(one: Type, other: Type) -> Type:
    """Return the more specific of two declarations that agree."""
    a, b = normalize(one), normalize(other)
    if a == "any" or (isinstance(b, dict) and isinstance(a, str)):
        return b
    if isinstance(a, str) and isinstance(b, str) and b != "any" and _specificity(b) > _specificity(a):
        return b
    return a


def _specificity(word: str) -> int:
    """Return how specific a word is among those that it agrees with."""
    depth = word.count("[]")
    return 2 * depth + (word.startswith("integer")) + (depth > 0 and not word.startswith("any"))


def type_error(declared: Type, value: Any, raw: bytes, check: SchemaCheck) -> str | None:
    """Return the error in a value of a declared type, or None. ``raw`` is the same value as JSON."""
    return normal_type_error(normalize(declared), value, raw, check)


def normal_type_error(declared: str | dict[str, Any], value: Any, raw: bytes, check: SchemaCheck) -> str | None:
    """Return the error in a value, or None. The type must be normalized."""
    if isinstance(declared, dict):
        return check(declared, raw)
    return None if _has_type(declared, value) else f"{describe_value(value)} is not {with_article(declared)}"


def _has_type(word: str, value: Any) -> bool:
    if word == "any":
        return True
    if word.endswith("[]"):
        return isinstance(value, list) and all(_has_type(word[:-2], each) for each in value)
    if isinstance(value, bool):
        return word == "boolean"
    if word == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _PYTHON[word])


def describe_value(value: Any) -> str:
    """Return the type of a value, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    for word in ("string", "number", "object", "array"):
        if isinstance(value, _PYTHON[word]):
            return with_article(word)
    return type(value).__name__


def type_text(declared: Type) -> str:
    """Return a type as text, for messages."""
    word = normalize(declared)
    return word if isinstance(word, str) else "a JSON Schema"

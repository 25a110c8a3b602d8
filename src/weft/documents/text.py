"""Read YAML or JSON text into data, with the line of every value.

YAML is limited to what JSON can express: ``true`` and ``false`` are the only booleans, dates and keys are strings, and
there are no tags. An alias counts as the value that it stands for, so that a hostile document cannot grow when it is
read. JSON may have ``//`` comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import yaml

from weft.core.findings import At

BYTES_MAX = 8 * 1024 * 1024
VALUES_MAX = 250_000
DEPTH_MAX = 60

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]{1,300}|[0-9]{1,300}(?:\.[0-9]{0,300})?)(?:[eE][-+]?[0-9]{1,4})?")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
# An unclosed string extends to the end. Otherwise the search would start again at every quote: quadratic time.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|//[^\n]*', re.DOTALL)
_BANG = re.compile(r"(?P<key>[\w-]{1,40}):\s{1,40}(?P<value>!(?!!)[^\n#,}]{1,200})")

Marks = tuple[int, "dict[str, Marks] | list[Marks] | None"]
"""The line of a value, and the lines of its parts."""


class UnreadableText(Exception):
    """Raised for a text that is not a document. ``line`` is 0 if no particular line is wrong."""

    def __init__(self, code: str, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line


class Text:
    """The data of a document, and the line of every value. A document from a dict has no lines."""

    def __init__(self, data: Any, marks: Marks | None) -> None:
        self.data = data
        self._marks = marks

    def line(self, at: At) -> int:
        """Return the line of a location, or of the innermost value that contains it."""
        if self._marks is None:
            return 0
        line, parts = self._marks
        for key in at:
            found: Marks | None = None
            if isinstance(parts, dict) and isinstance(key, str):
                found = parts.get(key)
            elif isinstance(parts, list) and isinstance(key, int) and key < len(parts):
                found = parts[key]
            if found is None:
                break
            line, parts = found
        return line


def check_size(text: str | bytes) -> None:
    """Raise UnreadableText if a document is too big. Bytes are checked before they are decoded."""
    if len(text) > BYTES_MAX:
        unit = "characters" if isinstance(text, str) else "bytes"
        raise UnreadableText("too_big", f"the document has more than {BYTES_MAX:,} {unit}.")


def read_text(text: str) -> Text:
    """Read the document in a text.

    Raises:
        UnreadableText: it is neither YAML nor JSON, or too big or too deep to be a document.
    """
    check_size(text)
    if text.lstrip()[:1] == "{":
        bare = _COMMENT.sub(lambda found: found[1] or "", text) if "//" in text else text
        data = _parse_json(bare)
        if data is not None:
            return Text(data, _lines_of_json(bare))
    try:
        return Text(*_Composer(text).document())
    except yaml.MarkedYAMLError as error:
        raise _bad_yaml(error, text) from None
    except yaml.YAMLError as error:  # a character that YAML does not have
        raise UnreadableText("yaml", f"this is not YAML: {str(error).partition(chr(10))[0]}.") from None


class _DuplicateKey(Exception):
    pass


def _parse_json(text: str) -> Any:
    """Parse JSON. Returns None on errors, because the YAML parser has better messages."""
    try:
        return json.loads(
            text, object_pairs_hook=_object_without_duplicates, parse_constant=_refuse_constant, parse_int=_read_integer
        )
    except (ValueError, RecursionError, _DuplicateKey):
        return None


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _DuplicateKey
    return found


def _refuse_constant(_: str) -> Any:
    raise ValueError


def _read_integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError
    return int(text)


def _lines_of_json(text: str) -> Marks | None:
    """Return the lines of JSON text, as the YAML parser sees them. None if it cannot read the text."""
    try:
        return _Composer(text).document()[1]
    except (yaml.YAMLError, UnreadableText):
        return None


class _Composer:
    """Builds data from the events of the YAML parser, and counts the values as it goes."""

    def __init__(self, text: str) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._text = text
        self._next: Callable[[], Any] = loader(text).get_event
        self._anchors: dict[str, tuple[Any, Marks, int]] = {}
        self._values = 0

    def document(self) -> tuple[Any, Marks]:
        self._next()  # the start of the stream
        if isinstance(self._next(), yaml.StreamEndEvent):
            raise UnreadableText("yaml", "the document is empty.")
        built = self._read_value(self._next(), 0)
        self._next()  # the end of the document
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise UnreadableText("yaml", "a file can contain only one document.", line=_yaml_line(after))
        return built

    def _read_value(self, event: Any, depth: int) -> tuple[Any, Marks]:
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._resolve_alias(event)
        before = self._values
        self._values += 1
        if self._values > VALUES_MAX:
            raise _too_big(event)
        if event.tag is not None:
            raise _tag_error(event, self._text)
        if kind is yaml.ScalarEvent:
            text = event.value
            built: tuple[Any, Marks] = (_read_scalar(text) if event.implicit[0] else text, (_yaml_line(event), None))
        elif depth >= DEPTH_MAX:
            raise UnreadableText("too_deep", f"the document has more than {DEPTH_MAX} levels.", line=_yaml_line(event))
        elif kind is yaml.SequenceStartEvent:
            built = self._read_list(event, depth + 1)
        else:
            built = self._read_mapping(event, depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = (*built, self._values - before)
        return built

    def _resolve_alias(self, event: Any) -> tuple[Any, Marks]:
        found = self._anchors.get(event.anchor)
        if found is None:
            raise UnreadableText("yaml", f"the alias *{event.anchor} comes before its anchor.", line=_yaml_line(event))
        data, (_, parts), size = found
        self._values += size
        if self._values > VALUES_MAX:
            raise _too_big(event)
        return data, (_yaml_line(event), parts)

    def _read_list(self, event: Any, depth: int) -> tuple[Any, Marks]:
        items: list[Any] = []
        marks: list[Marks] = []
        while type(inner := self._next()) is not yaml.SequenceEndEvent:
            item, mark = self._read_value(inner, depth)
            items.append(item)
            marks.append(mark)
        return items, (_yaml_line(event), marks)

    def _read_mapping(self, event: Any, depth: int) -> tuple[Any, Marks]:
        fields: dict[str, Any] = {}
        marks: dict[str, Marks] = {}
        while type(name := self._next()) is not yaml.MappingEndEvent:
            if type(name) is not yaml.ScalarEvent or name.tag is not None:
                raise UnreadableText("yaml", "a key must be text.", line=_yaml_line(name))
            key = name.value
            if key in fields:
                raise UnreadableText("duplicate_key", f'the key "{key}" is used twice.', line=_yaml_line(name))
            fields[key], (line, parts) = self._read_value(self._next(), depth)
            # A block begins on the line after its key, but the line of the key is easier to find.
            marks[key] = (_yaml_line(name) if parts is not None else line, parts)
        return fields, (_yaml_line(event), marks)


def _too_big(event: Any) -> UnreadableText:
    return UnreadableText("too_big", f"the document has more than {VALUES_MAX:,} values.", line=_yaml_line(event))


def _yaml_line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _read_scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if not text[0].isdigit() and text[0] not in "+-.":
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and not text.strip("+-").isdigit():
        number = float(text)
        if number - number == 0:  # not infinite
            return number
    return text


def _tag_error(event: Any, text: str) -> UnreadableText:
    line = _yaml_line(event)
    return _unquoted_bang_error(text, line) or UnreadableText("yaml", f"the tag {event.tag} is not allowed.", line=line)


def _unquoted_bang_error(text: str, line: int) -> UnreadableText | None:
    """Return a message for the most common mistake: a condition that begins with an unquoted ``!``."""
    lines = text.split("\n")
    found = _BANG.search(lines[line - 1]) if 0 < line <= len(lines) else None
    if found is None:
        return None
    message = f'a condition that begins with ! must be quoted: {found["key"]}: "{found["value"].strip()}"'
    return UnreadableText("yaml", message, line=line)


def _bad_yaml(error: yaml.MarkedYAMLError, text: str) -> UnreadableText:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark is not None else 0
    problem = error.problem or error.context or "it cannot be read"
    return _unquoted_bang_error(text, line) or UnreadableText("yaml", f"this is not YAML: {problem}.", line=line)

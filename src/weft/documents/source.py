"""A document and its source: a file, a string or a dict. Problems become findings with a path and a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.core import values
from weft.core.findings import At, Finding, Problem, Problems, document_error
from weft.core.plurals import shortened, with_short_words
from weft.documents.fields import Fields
from weft.documents.text import BYTES_MAX, Text, UnreadableText, check_size, read_text
from weft.errors import BadValue, LimitExceeded, NotFound, WeftError


class DocumentKind(msgspec.Struct, frozen=True):
    """A kind of document, graph or steps: everything in which the two differ."""

    area: str
    """The first part of the codes of findings."""
    format: str
    """The value of the field ``weft``."""
    error: type[WeftError]
    items: str
    """The field with the nodes or steps: a mapping by id, or a list."""
    noun: str
    """The word for one of these items."""
    ids: tuple[str, ...]
    """The fields that may contain the id of a listed item."""
    repeated: str
    """The code for two items with the same id."""

    def refusal(self, findings: Sequence[Finding], *, name: str) -> WeftError:
        """Return the error for an invalid document of this kind."""
        return document_error(findings, name=name, error=self.error)

    def new_problems(self) -> Problems:
        """Return an empty list of problems for a document of this kind."""
        return Problems(self.area)


class DocumentSource:
    """A document, its file, and the lines of its values."""

    def __init__(self, kind: DocumentKind, text: Text, file: str = "", written: str = "") -> None:
        """``written`` is the text as its author wrote it; empty if the document was a dict."""
        self.kind = kind
        self.text = text
        self.written = written
        self.data = text.data
        self.file = file

    def finding(self, problem: Problem) -> Finding:
        """Return the finding for a problem, with its path and line."""
        return Finding(
            problem.code,
            with_short_words(problem.message),
            self._readable_path(problem.at),
            self.text.line(problem.at) if self.file else 0,
            self.file,
            with_short_words(problem.suggestion),
            problem.severity,
        )

    def refusal(self, findings: Sequence[Finding], *, name: str = "") -> WeftError:
        """Return the error for this document."""
        return self.kind.refusal(findings, name=self.file or name or "the document")

    def _readable_path(self, at: At) -> str:
        """Return a readable path. Nodes and steps in a list are shown by id, not by index."""
        text = ""
        for depth, key in enumerate(at):
            listed = depth == 1 and at[0] == self.kind.items and isinstance(key, int)
            shown = self._item_id(key) if listed and isinstance(key, int) else key
            if isinstance(shown, int):
                text += f"[{shown}]"
            else:
                text += f".{shortened(shown)}" if text else shortened(shown)
        return text

    def _item_id(self, index: int) -> str | int:
        return item_id(self.data[self.kind.items][index], self.kind) or index


def read_file(path: Path, kind: DocumentKind) -> DocumentSource:
    """Read a document from a file.

    Raises:
        NotFound: the file cannot be read.
        WeftError: the error of this kind of document, if the file cannot be read as YAML or JSON.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.", code=f"{kind.area}.no_file") from None
    return read_source(raw, path.name, kind)


def read_source(text: str | bytes, file: str, kind: DocumentKind) -> DocumentSource:
    """Read a document from text. ``file`` is its name in findings.

    Raises:
        WeftError: the error of this kind of document, if the text cannot be read as YAML or JSON.
    """
    try:
        check_size(text)
        written = text if isinstance(text, str) else text.decode("utf-8-sig")
        return DocumentSource(kind, read_text(written), file, written)
    except UnicodeDecodeError:
        finding = Finding(f"{kind.area}.yaml", "the file is not UTF-8.", file=file)
    except UnreadableText as error:
        finding = Finding(f"{kind.area}.{error.code}", error.message, line=error.line, file=file)
    raise kind.refusal([finding], name=file)


def read_dict(
    data: Mapping[str, Any], kind: DocumentKind, encode: Callable[..., bytes] = values.encode_trusted
) -> DocumentSource:
    """Read a document from a dict. The data is copied, so that later changes to the dict have no effect.

    ``encode`` decides what is JSON; ``values.encode`` also refuses values that look like references to secrets.

    Raises:
        WeftError: the error of this kind of document, if the dict is not JSON or is nested too deeply.
    """
    try:
        copied = values.decode(encode(dict(data), what="the document contains"))
    except (BadValue, LimitExceeded) as error:
        code = f"{kind.area}.too_deep" if isinstance(error, LimitExceeded) else f"{kind.area}.not_json"
        finding = Finding(code, error.message, str(error.context.get("path", "")), suggestion=error.hint)
        raise kind.refusal([finding], name="the document") from None
    return DocumentSource(kind, Text(copied, None))


def check_format(document: Fields, kind: DocumentKind) -> None:
    """Report a document whose field ``weft`` names another format."""
    if document.raw.get("weft", kind.format) != kind.format:
        document.wrong("weft", kind.format, code="unknown_format")


def listed_items(items: Sequence[Any], problems: Problems, kind: DocumentKind) -> Iterator[tuple[str, Any, At]]:
    """Yield the items of a list with their ids and locations. Missing and repeated ids are reported."""
    seen: set[str] = set()
    for index, item in enumerate(items):
        at: At = (kind.items, index)
        given = [key for key in kind.ids if isinstance(item, dict) and key in item]
        name = item[given[0]] if given else None
        if len(given) > 1:
            problems.add(
                "two_spellings",
                (*at, given[1]),
                f"{given[0]} and {given[1]} are two names for the same field; use one of them.",
            )
        if not isinstance(name, str) or not name:
            problems.add("missing_field", at, f"a {kind.noun} in a list needs an id.")
        elif name in seen:
            problems.add(kind.repeated, at, f'two {kind.noun}s are called "{name}".')
        else:
            seen.add(name)
            yield name, item, at


def item_id(item: Any, kind: DocumentKind) -> str:
    """Return the id of a listed item; empty if it has none."""
    ids = (item.get(key) for key in kind.ids) if isinstance(item, dict) else ()
    return next((text for text in ids if isinstance(text, str) and text), "")

"""Fill in URLs with placeholders for arguments, such as ``https://shop.example/price/{order_id}``. Pure.

Arguments are percent-encoded, and cannot add or remove a path segment or go up a level. The host has no placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from weft.core.values import encode
from weft.errors import BadValue

_PLACE = re.compile(r"\{([^{}/?#\s]+)\}")


def url_names(template: str) -> list[str]:
    """Return the names of the arguments in a URL, in order.

    Raises:
        BadValue: the text is not a URL, or has a placeholder where none is allowed.
    """
    try:
        parts = urlsplit(template)
        parts.port  # noqa: B018 - reading the port checks it
    except ValueError as error:
        raise _bad(template, "cannot be read") from error
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise _bad(template, "does not begin with https:// and a host")
    if "@" in parts.netloc:
        raise _bad("", "contains a user name or password; send them in a header")
    if "{" in parts.netloc or "}" in parts.netloc:
        raise _bad(template, "has an argument in its host, which would let the input choose the server")
    rest = _PLACE.sub("", template)
    if "{" in rest or "}" in rest:
        raise _bad(template, "has a brace that is not part of a {name}")
    return list(dict.fromkeys(_PLACE.findall(template)))


def fill_url(template: str, arguments: Mapping[str, Any]) -> str:
    """Fill in the arguments of a URL. Values other than text are written as JSON.

    Raises:
        BadValue: an argument is missing, or would make the URL name another resource.
    """
    parts = urlsplit(template)
    path = "/".join(_segment(segment, arguments) for segment in parts.path.split("/"))
    query = _PLACE.sub(lambda place: quote(_url_text(place[1], arguments), safe=""), parts.query)
    return f"{parts.scheme}://{parts.netloc}{path}{f'?{query}' if query else ''}"


def add_query(url: str, query: Mapping[str, Any]) -> str:
    """Add parameters to the query of a URL. None is omitted, and a list repeats its name.

    Raises:
        BadValue: one of the values cannot be used in a query.
    """
    pairs = [(name, text) for name, value in query.items() for text in _query_texts(name, value)]
    if not pairs:
        return url
    base, _, _ = url.partition("#")
    return f"{base}{'&' if '?' in base else '?'}{urlencode(pairs)}"


def plain_text(value: str | float) -> str:
    """Return a scalar as text for a header, a path or a query: ``true``, ``1.5``, text unchanged."""
    return value if isinstance(value, str) else encode(value).decode()


def _query_texts(name: str, value: Any) -> Iterable[str]:
    for part in value if isinstance(value, list) else [value]:
        if part is None:
            continue
        if not isinstance(part, str | int | float):
            raise BadValue(f"query.{name}: only strings, numbers, booleans and lists of them can be used in a query.")
        yield plain_text(part)


def _segment(segment: str, arguments: Mapping[str, Any]) -> str:
    filled = _PLACE.sub(lambda place: quote(_url_text(place[1], arguments), safe=""), segment)
    if filled != segment and filled in ("", ".", ".."):
        names = ", ".join(_PLACE.findall(segment))
        raise BadValue(f'With {names} = "{filled}", the URL would name another resource.', hint="It was not called.")
    return filled


def _url_text(name: str, arguments: Mapping[str, Any]) -> str:
    value = arguments.get(name)
    if value is None:
        raise BadValue(f"The URL needs {name}, which is missing.", hint=f"Give {name} a value.")
    return value if isinstance(value, str) else encode(value).decode()


def _bad(template: str, why: str) -> BadValue:
    shown = f' "{template[:100]}"' if template else ""
    return BadValue(f"The URL{shown} {why}.", hint="Write https://host/path/{argument}.")

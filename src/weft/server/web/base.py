"""The address to which all links, files and requests of the web UI are relative.

An application that mounts the API passes the prefix as ``root_path``. A proxy that removes a prefix does not say so.
Then the base is relative to the requested page, which is right whatever was removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, Final
from urllib.parse import urlsplit

from weft.server.identity import Origin, parse_origin
from weft.server.settings import public_url

BASE: Final = "__BASE__"
NONCE: Final = "__NONCE__"


def base_of(scope: Mapping[str, Any], path: str) -> str:
    """Return the base of the page at ``path``, which is the path below the prefix."""
    root = scope.get("root_path", "")
    if root:
        return f"{root.rstrip('/')}/"
    return "../" * (path.count("/") - 1) or "./"


def cookie_path(scope: Mapping[str, Any], origin: Origin) -> str:
    """Return the path for cookies of a page of this origin: the prefix, as far as it is known."""
    public = public_url()
    if not scope.get("root_path", "") and public and parse_origin(public) == origin:
        return urlsplit(public).path or "/"
    return scope.get("root_path", "") or "/"


def render_index(template: str, base: str, nonce: str) -> str:
    """Return the page with its base and nonce."""
    return template.replace(BASE, escape(base, quote=True)).replace(NONCE, nonce)

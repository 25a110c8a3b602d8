"""Addresses of stores: what the environment says, and what people may see of them."""

from __future__ import annotations

import os
from urllib.parse import urlsplit, urlunsplit


def blobs_url() -> str | None:
    """Where large values are kept, as WEFT_BLOBS says; None: with the runs."""
    return os.environ.get("WEFT_BLOBS") or None


def shown_url(url: str) -> str:
    """The URL for people and logs: without its password."""
    try:
        parts = urlsplit(url)
        if parts.password is None:
            return url
    except ValueError:
        return url.partition("://")[0] + "://…"
    user, _, place = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:***@{place}"))

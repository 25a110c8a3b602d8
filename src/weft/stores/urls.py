"""URLs of stores."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from weft.settings import variable


def blobs_url() -> str | None:
    """Return WEFT_BLOBS, the URL for large values. None if they are kept with the runs."""
    return variable("WEFT_BLOBS") or None


def url_without_password(url: str) -> str:
    """Return the URL without its password, for people and logs."""
    try:
        parts = urlsplit(url)
        if parts.password is None:
            return url
    except ValueError:
        return url.partition("://")[0] + "://…"
    user, _, place = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:***@{place}"))

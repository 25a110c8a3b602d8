"""Blobs with their content outside the database: in a directory or in S3. The database knows which runs use them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from weft.errors import UsageError
from weft.extras import require
from weft.stores.blobs.content import BlobContent
from weft.stores.blobs.directory import DirectoryContent
from weft.stores.blobs.indexed import Index, IndexedBlobs

__all__ = ["BlobContent", "Index", "IndexedBlobs", "open_content"]


def open_content(url: str) -> BlobContent:
    """Open the directory or bucket for blobs that a URL names. Raises UsageError with a hint if the URL is neither."""
    parts = urlsplit(url)
    match parts.scheme:
        case "file" if parts.path not in {"", "/"} and not parts.netloc:
            return DirectoryContent(Path(unquote(parts.path)))
        case "s3" if parts.netloc:
            return _open_s3(url)
        case _:
            raise UsageError(
                f"{url!r} is not the URL of a place for blobs.",
                hint='Use "file:///absolute/path" or "s3://bucket/prefix", or no URL to keep blobs in the database.',
            )


def _open_s3(url: str) -> BlobContent:
    require("s3", "Keeping blobs in S3")
    from weft.stores.blobs.s3 import S3Content  # noqa: PLC0415

    return S3Content(url)

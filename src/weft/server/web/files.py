"""The files of the web UI, which ``make ui`` builds into the folder ``static``.

All of them are read once. So a request can only get a file that was there at the start, and nothing is ever looked up
in a folder. Text is stored compressed only (``app.js.br`` and ``app.js.gz``) and decompressed for the rare client that
accepts neither. Fonts are compressed by their own format.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

STATIC: Final = Path(__file__).parent / "static"
INDEX: Final = "index.html"
HASHED: Final = "assets/"
"""The folder whose files have a digest of their content in their names."""
MEDIA: Final = {
    ".css": "text/css; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
STORED_PLAIN: Final = frozenset({".ico", ".png", ".woff2"})
ENCODINGS: Final = {"br": ".br", "gzip": ".gz"}
"""The encodings that files are stored in, best first."""


class WebFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file. ``plain`` is None if only compressed forms are stored."""

    path: str
    media: str
    plain: bytes | None = None
    encoded: dict[str, bytes] = {}
    """The content by encoding, best first."""

    @property
    def cache(self) -> str:
        """Return how long a browser may keep the file: for ever, if other content has another name."""
        return "public, max-age=31536000, immutable" if self.path.startswith(HASHED) else "no-cache"

    def content(self, accept_encoding: str) -> tuple[bytes, str]:
        """Return the content in the best encoding that a client accepts, and the name of the encoding."""
        if self.plain is not None:
            return self.plain, ""
        accepted = _accepted_encodings(accept_encoding)
        for encoding, content in self.encoded.items():
            if encoding in accepted:
                return content, encoding
        return gzip.decompress(self.encoded["gzip"]), ""


class WebFiles(msgspec.Struct, frozen=True, kw_only=True):
    """All files of the web UI. ``index`` is the page that loads the others; None if the UI is not built."""

    index: str | None = None
    files: dict[str, WebFile] = {}


@cache
def installed_files() -> WebFiles:
    """Return the files that are installed with this package."""
    return read_files(STATIC)


def read_files(folder: Path) -> WebFiles:
    """Read all files of a folder. Without a page in it, there are none."""
    page = folder / INDEX
    if not page.is_file():
        return WebFiles()
    stored = {file.relative_to(folder).as_posix(): file for file in sorted(folder.rglob("*")) if file.is_file()}
    files: dict[str, WebFile] = {}
    for path, file in stored.items():
        if file.suffix in STORED_PLAIN:
            files[path] = WebFile(path=path, media=MEDIA[file.suffix], plain=file.read_bytes())
        elif file.suffix == ENCODINGS["gzip"]:
            name = path.removesuffix(file.suffix)
            encoded = {encoding: stored[name + suffix].read_bytes() for encoding, suffix in ENCODINGS.items()}
            files[name] = WebFile(path=name, media=MEDIA[Path(name).suffix], encoded=encoded)
    return WebFiles(index=page.read_text("utf-8"), files=files)


def _accepted_encodings(header: str) -> set[str]:
    """Return the encodings of an ``Accept-Encoding`` header, without those of weight zero."""
    weights: dict[str, bool] = {}
    for part in header.lower().split(","):
        name, _, parameters = part.partition(";")
        weights[name.strip()] = not _is_zero(parameters)
    others = weights.get("*", False)
    return {encoding for encoding in ENCODINGS if weights.get(encoding, others)}


def accepts_html(header: str) -> bool:
    """Return whether an ``Accept`` header names HTML, as those of browsers do. ``*/*`` does not count."""
    for part in header.lower().split(","):
        name, _, parameters = part.partition(";")
        if name.strip() == "text/html":
            return not _is_zero(parameters)
    return False


def _is_zero(parameters: str) -> bool:
    """Return whether the parameters have a weight of zero (``q=0``), which means never."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return not value.strip().strip("0.")
    return False

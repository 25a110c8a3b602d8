"""Decompress a body in pieces of bounded size, so that the reader can count the bytes and stop."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from weft.steps.http.failures import HttpFailed

ENCODINGS = "gzip, deflate"
_PIECE = 64 * 1024
_GZIP_OR_ZLIB = 47
_RAW = -15


class Plain:
    """No compression."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def finish(self) -> None: ...


class Inflate:
    """Decompresses gzip and deflate in pieces of bounded size. Several members are one body."""

    def __init__(self) -> None:
        self._stream: zlib._Decompress | None = None  # its class has no public name
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decompress bytes piece by piece. The reader may stop after any piece."""
        full = False
        while data or full:
            if self._stream is None:
                # Some servers send deflate without the two bytes of its header.
                raw = not self._begun and data[0] & 0x0F != 8 and data[0] != 0x1F
                self._stream = zlib.decompressobj(_RAW if raw else _GZIP_OR_ZLIB)
                self._begun = True
            stream = self._stream
            piece = self._piece(stream, data)
            yield piece
            data, full = stream.unconsumed_tail, len(piece) == _PIECE  # full: zlib may have more output buffered
            if stream.eof:
                data, full, self._stream = stream.unused_data.lstrip(b"\0"), False, None

    @staticmethod
    def _piece(stream: zlib._Decompress, data: bytes) -> bytes:
        try:
            return stream.decompress(data, _PIECE)
        except zlib.error as error:
            raise HttpFailed(f"The response cannot be decompressed: {error}.") from error

    def finish(self) -> None:
        """End the body.

        Raises:
            HttpFailed: the compressed data is incomplete.
        """
        if self._stream is not None:
            raise HttpFailed("The response cannot be decompressed: it is incomplete.")


def decoder(encoding: str) -> Plain | Inflate:
    """Return the decoder for a Content-Encoding.

    Raises:
        HttpFailed: the request did not accept this encoding.
    """
    match encoding.strip().lower():
        case "" | "identity":
            return Plain()
        case "gzip" | "x-gzip" | "deflate":
            return Inflate()
        case other:
            raise HttpFailed(f"The response has the encoding {other[:60]!r}, but the request accepts {ENCODINGS}.")

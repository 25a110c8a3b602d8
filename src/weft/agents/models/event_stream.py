"""Read server-sent events from the bytes of an answer, in whatever pieces they come."""

from __future__ import annotations

from collections.abc import Iterator

LINE_BYTES_MAX = 4 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class LineTooLong(ValueError):
    """A line of the stream is longer than any event."""


class EventReader:
    """Collects lines into events and yields the data of each. Names, ids and comments of events are ignored."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of the events that this piece completes. Raises LineTooLong."""
        first, *more = piece.split(b"\n")
        self._rest += first  # a long line may come in many pieces, so what is there already is not copied
        for line in more:
            yield from self._take_line()
            self._rest += line
        if len(self._rest) > LINE_BYTES_MAX:
            raise LineTooLong(f"a line has more than {LINE_BYTES_MAX:,} bytes")

    def finish(self) -> Iterator[bytes]:
        """Yield the data of an event that the end of the stream completes."""
        if self._rest:
            yield from self._take_line()
        yield from self._line(b"")

    def _take_line(self) -> Iterator[bytes]:
        line = bytes(self._rest)
        self._rest.clear()
        if not self._begun:
            line = line.removeprefix(_BOM)
            self._begun = True
        yield from self._line(line.removesuffix(b"\r"))

    def _line(self, line: bytes) -> Iterator[bytes]:
        if not line:
            if self._data:
                yield b"\n".join(self._data)
                self._data.clear()
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))

"""One message to a client that listens: encoded once, whoever gets it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec

from weft.observe.event_parts import EventPart
from weft.server import views
from weft.server.problems import ProblemDetails

_encode = msgspec.json.Encoder().encode


class LiveFrame(msgspec.Struct, eq=False):
    """``id`` is what a client that comes back names as the last one it saw; empty: it is not counted."""

    id: str
    event: str
    data: bytes
    _sse: bytes = b""

    def sse(self) -> bytes:
        """As a server-sent event. JSON has no line breaks of its own."""
        if not self._sse:
            head = f"id: {self.id}\nevent: {self.event}\n" if self.id else f"event: {self.event}\n"
            self._sse = b"%bdata: %b\n\n" % (head.encode(), self.data)
        return self._sse

    def text(self) -> str:
        """As a message of a WebSocket."""
        return _encode({"id": self.id, "event": self.event, "data": msgspec.Raw(self.data)}).decode()


Batches = AsyncGenerator[Sequence[LiveFrame], None]
"""What a client gets, batch by batch."""


class LiveEvent(views.EventView, frozen=True, kw_only=True):
    """An event of any run."""

    run: str
    workflow: str
    status: str


class Gap(msgspec.Struct, frozen=True):
    """``lost`` events were not sent, because the client was too slow or away for too long; -1: nobody knows."""

    lost: int


def event_view(part: EventPart) -> views.EventView:
    """An event for the API."""
    kind, data = part.split()
    return views.EventView(part.seq, views.known_moment(part.at), kind, data, part.part)


def run_frame(part: EventPart) -> LiveFrame:
    """An event of the one run that a client follows. A client that comes back has seen whole records only."""
    view = event_view(part)
    return LiveFrame(str(part.seq) if part.is_last else "", view.kind, _encode(view))


def end_frame(status: str) -> LiveFrame:
    """The run is over: nothing more will come."""
    return LiveFrame("", "end", _encode({"status": status}))


def problem_frame(problem: ProblemDetails) -> LiveFrame:
    """The next event of the run cannot be read: nothing more will come."""
    return LiveFrame("", "problem", _encode(problem))


def ready_frame(id: str) -> LiveFrame:
    """The client stands here, before anything has happened."""
    return LiveFrame(id, "ready", b"{}")


def gap_frame(lost: int, id: str = "") -> LiveFrame:
    """Some events were not sent."""
    return LiveFrame(id, "gap", _encode(Gap(lost)))


def chunk_frame(view: views.ChunkView) -> LiveFrame:
    """A piece of output."""
    return LiveFrame(str(view.offset), "chunk", _encode(view))


def encode(view: LiveEvent) -> bytes:
    """The data of a frame."""
    return _encode(view)

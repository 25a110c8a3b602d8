"""Frames: messages to listening clients, each encoded once for all of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec

from weft.observe.event_parts import EventPart
from weft.server import views
from weft.server.problems import ProblemDetails

_encode = msgspec.json.Encoder().encode


class LiveFrame(msgspec.Struct, eq=False):
    """One message. A client that reconnects sends the last ``id`` that it saw. Some frames have none."""

    id: str
    event: str
    data: bytes
    _sse: bytes = b""

    def sse(self) -> bytes:
        """Encode as a server-sent event. The JSON has no line breaks."""
        if not self._sse:
            head = f"id: {self.id}\nevent: {self.event}\n" if self.id else f"event: {self.event}\n"
            self._sse = b"%bdata: %b\n\n" % (head.encode(), self.data)
        return self._sse

    def text(self) -> str:
        """Encode as a WebSocket message."""
        return _encode({"id": self.id, "event": self.event, "data": msgspec.Raw(self.data)}).decode()


Batches = AsyncGenerator[Sequence[LiveFrame], None]
"""The frames for a client, in batches."""


class LiveEvent(views.EventView, frozen=True, kw_only=True):
    """An event of any run."""

    run: str
    workflow: str
    status: str


class Gap(msgspec.Struct, frozen=True):
    """The number of events that were lost because the client was slow or away for too long; -1 if unknown."""

    lost: int


def event_view(part: EventPart) -> views.EventView:
    """Return the view of an event."""
    kind, data = part.split()
    return views.EventView(part.seq, views.required_time(part.at), kind, data, part.part)


def run_frame(part: EventPart) -> LiveFrame:
    """Return the frame of an event of a followed run. Only the last event of a record has an id to continue from."""
    view = event_view(part)
    return LiveFrame(str(part.seq) if part.is_last else "", view.kind, _encode(view))


def end_frame(status: str) -> LiveFrame:
    """Return the last frame of a run that is over."""
    return LiveFrame("", "end", _encode({"status": status}))


def problem_frame(problem: ProblemDetails) -> LiveFrame:
    """Return the last frame of a run whose next event cannot be read."""
    return LiveFrame("", "problem", _encode(problem))


def ready_frame(id: str) -> LiveFrame:
    """Return the first frame of a filtered stream, with the position from which the client listens."""
    return LiveFrame(id, "ready", b"{}")


def gap_frame(lost: int, id: str = "") -> LiveFrame:
    """Return a frame that says that events were not sent."""
    return LiveFrame(id, "gap", _encode(Gap(lost)))


def chunk_frame(view: views.ChunkView) -> LiveFrame:
    """Return the frame of a chunk of output."""
    return LiveFrame(str(view.offset), "chunk", _encode(view))


def encode(view: LiveEvent) -> bytes:
    """Encode the data of a frame."""
    return _encode(view)

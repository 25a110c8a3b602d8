"""Events arrive in whatever pieces the network makes of them."""

import pytest

from weft.agents.models.event_stream import LINE_BYTES_MAX, EventReader, LineTooLong

STREAM = b"\xef\xbb\xbfdata: {}\n\n: a comment\nevent: x\r\ndata: a\r\ndata:b\r\n\r\ndata: last"


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_pieces_of_any_size_have_the_same_events(size: int) -> None:
    reader = EventReader()

    found = [data for first in range(0, len(STREAM), size) for data in reader.feed(STREAM[first : first + size])]

    assert [*found, *reader.finish()] == [b"{}", b"a\nb", b"last"]


def test_a_line_without_end_is_refused_in_small_pieces_too() -> None:
    reader = EventReader()
    piece = b"x" * 100

    with pytest.raises(LineTooLong):
        for _ in range(LINE_BYTES_MAX // len(piece) + 1):
            list(reader.feed(piece))

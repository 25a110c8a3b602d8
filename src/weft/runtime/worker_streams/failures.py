"""The errors of streams for workers."""

from __future__ import annotations

from weft.errors import UsageError


class BadAnswer(UsageError):
    """An answer of a worker on a stream cannot be used: its token is not valid, or its content cannot be read."""

    code = "stream.bad_answer"


class PrefixTaken(UsageError):
    """The streams with this prefix belong to another deployment."""

    code = "stream.prefix_taken"

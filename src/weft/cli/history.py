"""The log of a run as a person reads it, for the terminal; the API reads it the same way."""

from weft.runtime.history import OVER, History, Mark

__all__ = ["OVER", "History", "Mark"]

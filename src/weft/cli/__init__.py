"""The command line ``weft``. Importing it is cheap: a command imports what it needs when it is used."""

from weft.cli.entry import main

__all__ = ["main"]

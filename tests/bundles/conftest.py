"""Postgres databases are emptied as in the contract suite."""

from tests.contract.conftest import emptying

__all__ = ["emptying"]

"""Fixtures of the hot path."""

from tests.redis_server import own_redis, two_nodes

__all__ = ["own_redis", "two_nodes"]

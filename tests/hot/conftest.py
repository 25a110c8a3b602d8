"""Fixtures of the hot path."""

from tests.redis_server import own_redis

__all__ = ["own_redis"]

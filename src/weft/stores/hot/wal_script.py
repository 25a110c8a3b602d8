"""The names of the keys in Redis, and the scripts. Values are always arguments of a script, never part of its text."""

from __future__ import annotations

from typing import Final, NamedTuple

SEALED: Final = b"sealed"
OK: Final = b"ok"
GONE: Final = b"gone"

APPEND: Final = """
local head = redis.call('GET', KEYS[2])
if not head then return 'gone' end
if head ~= ARGV[1] then return head end
redis.call('XADD', KEYS[1], ARGV[2] .. '-0', 'b', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2])
if ARGV[4] then redis.call('XTRIM', KEYS[1], 'MINID', '=', ARGV[4] .. '-0') end
return 'ok'
"""
"""Add an entry. KEYS: log, head. ARGV: the number before it, its number, its bytes, and perhaps the first to keep.

Returns ``ok``, ``gone``, or the head: another number (a gap) or ``sealed`` with the number of the last entry.
"""

SEAL: Final = """#!lua flags=allow-oom
local head = redis.call('GET', KEYS[1])
if head and string.sub(head, 1, 6) ~= 'sealed' then
    head = 'sealed ' .. head
    redis.call('SET', KEYS[1], head)
end
return head
"""
"""End a WAL, if it is there. KEYS: head. Returns ``sealed`` and the number of the last entry, or nothing.

With its first line, a server that is no primary refuses it even if the WAL is not there, and one that is full does not:
what it holds of a dead host can still be read.
"""

MARK: Final = """
local now = redis.call('GET', KEYS[1]) or ''
if now ~= ARGV[2] then return now end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
"""
"""Set the identity. KEYS: id. ARGV: the new value, and the one that it replaces, empty if there must be none.

Returns the value that holds, empty if there is none.
"""


class WalKeys(NamedTuple):
    """The keys of a WAL. What is in braces decides where a cluster keeps them, so both are on one node."""

    log: str
    head: str


def wal_keys(namespace: str, wal: int) -> WalKeys:
    """Return the names of the keys of a WAL."""
    return WalKeys(f"weft:{{{namespace}.{wal}}}:log", f"weft:{{{namespace}.{wal}}}:head")


def identity_key(namespace: str) -> str:
    """Return the name of the key that says whose server this is."""
    return f"weft:{{{namespace}}}:id"

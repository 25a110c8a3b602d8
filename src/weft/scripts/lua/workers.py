"""Worker processes for Lua calls with patterns that cannot be interrupted. They are killed after ``WALL_S_MAX``."""

from __future__ import annotations

from typing import Final

import msgspec

from weft.errors import WeftError
from weft.killable import WorkerDied, WorkerKilled, WorkerPool
from weft.scripts.failures import script_failed
from weft.scripts.limits import WALL_S_MAX
from weft.scripts.lua.state import LuaOutcome
from weft.scripts.lua.worker import LuaCall

WORKERS_MAX: Final = 2
POOL: Final = WorkerPool("weft.scripts.lua.worker", "serve", size=WORKERS_MAX)


def run_killable(text: str, arguments: bytes, *, truth: bool) -> LuaOutcome:
    """Run a chunk in a worker process, which is killed after ``WALL_S_MAX``."""
    request = msgspec.msgpack.encode(LuaCall(text, arguments, truth))
    try:
        return msgspec.msgpack.decode(POOL.call(request, WALL_S_MAX), type=LuaOutcome)
    except WorkerKilled:
        return LuaOutcome("limit", b"time", 0)
    except WorkerDied as error:
        raise _worker_died(error) from None


def _worker_died(error: WorkerDied) -> WeftError:
    return script_failed(
        "lua",
        str(error),
        hint="Check whether something else killed the process, such as a memory limit.",
    )

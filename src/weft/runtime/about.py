"""What people see of the host that this process is."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from typing import Any


def this_process(workflows: Sequence[str], queues: Sequence[str]) -> dict[str, Any]:
    """Where it runs, since when, and what it is for."""
    return {
        "machine": socket.gethostname(),
        "pid": os.getpid(),
        "since": time.time_ns() // 1_000_000,
        "workflows": sorted(set(workflows)),
        "queues": sorted(queues),
    }

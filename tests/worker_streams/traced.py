"""Runs a worker, notes the keys it performs, and dies by SIGKILL before a line of it.

``python traced.py WORKER QUEUE`` with ``KILL_AT=LINE:TIMES`` (empty: never) and ``KEYS``, the file for the keys. A task
is performed until it has been touched, so that the lines which keep it are reached too.
"""

import os
import runpy
import signal
import sys
import threading
from types import FrameType
from typing import Any

WORKER = sys.argv[1]
LINE, _, TIMES = os.environ["KILL_AT"].partition(":")
touched = threading.Event()
hits: list[int] = []


def trace(frame: FrameType, event: str, _: Any) -> Any:
    """Look at one line before it runs."""
    if frame.f_code.co_filename != WORKER:
        return None
    name = frame.f_code.co_name
    if event == "line" and str(frame.f_lineno) == LINE:
        hits.append(frame.f_lineno)
        if len(hits) == int(TIMES):
            os.kill(os.getpid(), signal.SIGKILL)
    if name == "perform" and event == "call":
        with open(os.environ["KEYS"], "a") as file:  # noqa: PTH123  # in a tracer, the less is imported the better
            file.write(frame.f_locals["key"] + "\n")
    if name == "perform" and event == "return":
        touched.wait(30)
    if name == "keep" and event == "line" and frame.f_lineno > frame.f_code.co_firstlineno + 2:
        touched.set()
    return trace


sys.argv = sys.argv[1:]
threading.settrace(trace)
sys.settrace(trace)
runpy.run_path(WORKER, run_name="__main__")

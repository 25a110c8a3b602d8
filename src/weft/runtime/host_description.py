"""Describe this process as a host, for people."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.core.ids import INTERNAL_WORKFLOWS
from weft.steps.node_types import node_types
from weft.steps.step_arguments import StepArguments


def describe_process(
    programs: Sequence[tuple[str, str]],
    queues: Sequence[str],
    style_of: Callable[[str], str],
    steps: Mapping[str, StepArguments],
) -> dict[str, Any]:
    """Describe this process: where it runs, since when, and which programs and queues it serves.

    ``programs`` are pairs of workflow and version. An empty version means runs that were started by name.
    ``style_of`` returns the style of a workflow; empty for programs that are not registered by a name.
    """
    versions: dict[str, list[str]] = {}
    for name, version in sorted(programs):
        versions.setdefault(name, []).extend([version] if version else [])
    return {
        "machine": socket.gethostname(),
        "pid": os.getpid(),
        "since": time.time_ns() // 1_000_000,
        "workflows": [name for name in versions if name not in INTERNAL_WORKFLOWS],
        "versions": versions,
        "styles": {name: style for name in versions if (style := style_of(name))},
        "queues": sorted(queues),
        "steps": {name: msgspec.to_builtins(steps[name]) for name in sorted(steps)},
        "types": sorted(node_types()),
    }

"""Test workflows in a simulated world.

It has virtual time, fakes for steps and planned crashes. Recorded runs can be used as regression tests.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.ports.boundary import ProcessDied
    from weft.testing.crash_sweep import crash_everywhere
    from weft.testing.fakes import StepCall
    from weft.testing.faults import FaultyStore, Rates
    from weft.testing.history import export_events, replay
    from weft.testing.loop import SimLoop
    from weft.testing.models import ModelCall, calls
    from weft.testing.world import SimRun, World

__all__ = [
    "FaultyStore",
    "ModelCall",
    "ProcessDied",
    "Rates",
    "SimLoop",
    "SimRun",
    "StepCall",
    "World",
    "calls",
    "crash_everywhere",
    "export_events",
    "replay",
]

if not TYPE_CHECKING:
    # Modules are imported at first use, because pytest imports this package wherever Weft is installed.
    _HOMES = {
        "StepCall": "fakes",
        "FaultyStore": "faults",
        "ModelCall": "models",
        "calls": "models",
        "ProcessDied": "loop",
        "Rates": "faults",
        "SimLoop": "loop",
        "SimRun": "world",
        "World": "world",
        "crash_everywhere": "crash_sweep",
        "export_events": "history",
        "replay": "history",
    }

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            return getattr(import_module(f"weft.testing.{_HOMES[name]}"), name)
        raise AttributeError(f"module 'weft.testing' has no attribute {name!r}")

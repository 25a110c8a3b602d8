"""Write down, for every kind of event, what it does to a state: ``python -m tests.core.freeze_events``.

It may add a file for a kind that has none, and never changes one: a released event does for ever what it did.
"""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path
from typing import Any

import msgspec

from tests.core.histories import History, Tape, play
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.code.style import EVENTS

FOLDER = Path(__file__).parents[1] / "golden" / "events"
HASHES = FOLDER / "HASHES"
CASES_PER_KIND = 3


class Recording(History):
    """Remembers the state around every event."""

    def __init__(self) -> None:
        super().__init__()
        self.cases: dict[str, list[dict[str, Any]]] = {}
        self._before = self.machine.snapshot()

    def after(self, event: e.AnyEvent) -> None:
        after = self.machine.snapshot()
        case = {"before": self._before, "at": self.now, "event": e.encode(event), "after": after}
        self.cases.setdefault(kind_of(type(event)), []).append(case)
        self._before = after


def kind_of(event: type) -> str:
    return str(event.__struct_config__.tag)  # type: ignore[attr-defined]


def kinds() -> list[str]:
    return sorted(kind_of(event) for event in EVENTS)


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def hashes() -> dict[str, str]:
    """The hash that each file must have, by name."""
    if not HASHES.exists():
        return {}
    pairs = (line.split() for line in HASHES.read_text().splitlines() if line)
    return {name: digest for digest, name in pairs}


def applied(case: dict[str, Any]) -> Any:
    """What the code of today makes of a frozen case."""
    machine = CodeMachine.restore(msgspec.json.encode(case["before"]))
    machine.evolve(e.decode(msgspec.json.encode(case["event"])), at=case["at"])
    return msgspec.json.decode(machine.snapshot())


def found_cases(missing: set[str]) -> dict[str, list[dict[str, Any]]]:
    """The smallest cases of each missing kind among many random histories."""
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in missing}
    for seed in range(600):
        chance = random.Random(f"freeze {seed}")
        recording = Recording()
        play(recording, Tape([chance.randrange(2**16) for _ in range(chance.randrange(30, 250))]))
        for kind in missing & recording.cases.keys():
            found[kind].extend(recording.cases[kind])
    for kind, cases in found.items():
        unlike = {len(case["event"]): case for case in sorted(cases, key=lambda case: -len(case["before"]))}
        found[kind] = sorted(unlike.values(), key=lambda case: len(case["before"]))[:CASES_PER_KIND]
    return found


def freeze() -> list[str]:
    """Write what is missing; the kinds that were added."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    missing = {kind for kind in kinds() if not (FOLDER / f"{kind}.json").exists()}
    for kind, cases in sorted(found_cases(missing).items()) if missing else []:
        plain = [
            {name: msgspec.json.decode(part) if isinstance(part, bytes) else part for name, part in case.items()}
            for case in cases
        ]
        path = FOLDER / f"{kind}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode({"kind": kind, "cases": plain}), indent=1) + b"\n")
        with HASHES.open("a") as file:
            file.write(f"{hash_of(path)}  {path.name}\n")
    return sorted(missing)


if __name__ == "__main__":
    print("added:", ", ".join(freeze()) or "nothing", file=sys.stderr)

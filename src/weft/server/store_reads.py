"""The reads of a store that the API answers, so that ``weft --url https://…`` works like one beside the store.

Every read is a method of a port (``weft.ports``), with its arguments by name. The table below is all there is: what is
not in it cannot be called, and nothing in it writes: ``retention.doom_each`` only counts what would be deleted.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from weft.errors import BadValue
from weft.ports.blobs import Blobs
from weft.ports.budgets import Budgets
from weft.ports.definitions import Definitions
from weft.ports.hosts import Hosts
from weft.ports.memos import Memos
from weft.ports.policies import PolicyVersions
from weft.ports.retention import DoomRule, Holds, Retention
from weft.ports.starts import RuledStarts
from weft.ports.step_logs import StepLogs
from weft.ports.store import Directory, RunLog, TaskQueue
from weft.ports.streams import Streams
from weft.ports.tags import Tags
from weft.ports.tool_pins import ToolPins

FORMAT: Final = 1
"""The number of this format. It rises when a client of the old format would misread the answers."""
READS_MAX: Final = 100
"""How many reads one request may have."""
ROWS_MAX: Final = 10_000
"""How many rows the reads of one request may ask for, all together."""
PORTS: Final[Mapping[str, tuple[type, Sequence[str]]]] = {
    "directory": (Directory, ("find", "row", "search", "count", "workflows", "key", "counts")),
    "log": (RunLog, ("load", "events", "inbox", "keys")),
    "streams": (Streams, ("read", "lengths")),
    "budgets": (Budgets, ("read",)),
    "starts": (RuledStarts, ("rule", "with_slot")),
    "step_logs": (StepLogs, ("read", "totals")),
    "tags": (Tags, ("get", "find", "moves")),
    "holds": (Holds, ("find",)),
    "blobs": (Blobs, ("get",)),
    "definitions": (Definitions, ("get", "versions", "names", "unused")),
    "retention": (Retention, ("size", "is_doomed", "ended", "doom_each")),
    "hosts": (Hosts, ("list_all",)),
    "tasks": (TaskQueue, ("rows", "taken_by", "queues", "limits", "declared", "limited_keys", "standing")),
    "memos": (Memos, ("get",)),
    "policies": (PolicyVersions, ("newest", "get", "history")),
    "tool_pins": (ToolPins, ("list",)),
}
"""The ports, and those of their methods that can be called."""
OPERATOR_ONLY: Final = frozenset(
    {"directory.counts", "definitions.versions", "definitions.names", "definitions.unused"}
)
OPERATOR_PORTS: Final = frozenset({"retention", "hosts", "tasks", "memos", "policies", "tool_pins"})
"""What concerns all tenants, so that a tenant cannot call it."""


class ReadMethod(msgspec.Struct, frozen=True):
    """A method of a port: the types of its arguments by name, and the type of its answer."""

    port: str
    method: str
    arguments: Mapping[str, Any]
    required: frozenset[str]
    answer: Any

    @property
    def name(self) -> str:
        return f"{self.port}.{self.method}"

    @property
    def is_for_operators(self) -> bool:
        return self.port in OPERATOR_PORTS or self.name in OPERATOR_ONLY

    def read_arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with their types. Raises BadValue."""
        unknown, missing = given.keys() - self.arguments.keys(), self.required - given.keys()
        if unknown or missing:
            what = f"has no argument {min(unknown)[:60]!r}" if unknown else f"needs the argument {min(missing)!r}"
            raise BadValue(f"The read {self.name} {what}.", code="value.wrong_type")
        try:
            read = {name: msgspec.convert(value, self.arguments[name]) for name, value in given.items()}
        except msgspec.ValidationError as error:
            raise BadValue(f"The read {self.name} is not valid: {error}.", code="value.wrong_type") from None
        _check_rows(f"The read {self.name}", rows_asked(read))
        if isinstance(rule := read.get("rule"), DoomRule) and not rule.dry_run:
            raise BadValue(f"The read {self.name} deletes nothing.", hint="Set dry_run.", code="value.wrong_type")
        return read


def rows_asked(arguments: Mapping[str, Any]) -> int:
    """Return the number of rows that the arguments of a read ask for; 0 if they do not say."""
    return int(arguments.get("limit", getattr(arguments.get("query"), "limit", 0)))


def check_rows_together(arguments: Iterable[Mapping[str, Any]]) -> None:
    """Refuse a request whose reads ask for more rows than one answer may have. Raises BadValue."""
    _check_rows("The reads together", sum(map(rows_asked, arguments)))


def _check_rows(who: str, asked: int) -> None:
    if not 0 <= asked <= ROWS_MAX:
        raise BadValue(
            f"{who} may ask for at most {ROWS_MAX:,} rows, not for {asked:,}.",
            hint="Ask for fewer rows, and for the rest in another request.",
            code="value.wrong_type",
        )


@cache
def read_methods() -> Mapping[str, ReadMethod]:
    """Return all reads by name, such as ``log.events``."""
    found = (
        _method(port, method, getattr(protocol, method))
        for port, (protocol, names) in PORTS.items()
        for method in names
    )
    return {one.name: one for one in found}


def _method(port: str, method: str, function: Callable[..., Any]) -> ReadMethod:
    hints = typing.get_type_hints(function)
    parameters = {name: one for name, one in inspect.signature(function).parameters.items() if name != "self"}
    required = frozenset(name for name, one in parameters.items() if one.default is inspect.Parameter.empty)
    return ReadMethod(port, method, {name: hints[name] for name in parameters}, required, hints["return"])

"""Node types that packages add: a name, a configuration with a schema, and how a node is performed.

A package declares its types in the entry point group ``weft.node_types``; a program adds one with
``register_node_type``. The compiler knows all of them, so it rejects an unknown type or an invalid configuration when
it reads the document.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from weft.core.values import encode
from weft.errors import Critical, LimitExceeded, NameTaken, UsageError, WeftError
from weft.steps.codec import Codec
from weft.steps.raised import call_in_thread
from weft.steps.task import Executor

GROUP = "weft.node_types"
_known: dict[str, NodeType] = {}
_loaded: list[bool] = []


@dataclass(frozen=True, slots=True)
class NodeType:
    """A kind of graph node. ``perform(config, input)`` returns the output. If it is not async, it runs in a thread.

    ``config`` is the type of the configuration: a model, dataclass or TypedDict, or a JSON Schema. None accepts
    anything.
    """

    name: str
    perform: Callable[[Any, Any], Any]
    config: type | dict[str, Any] | None = None
    description: str = ""

    def schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of the configuration."""
        if self.config is None or isinstance(self.config, dict):
            return self.config
        return dict(Codec.of(self.config).schema())


def register_node_type(node_type: NodeType) -> None:
    """Register a kind of node in this process. Raises NameTaken."""
    known = _known.get(node_type.name)
    if known is not None and known != node_type:
        raise NameTaken(f'Two node types are called "{node_type.name}".', hint="Rename one of them.")
    _known[node_type.name] = node_type


def node_types() -> dict[str, NodeType]:
    """Return all node types that packages and this program have added, by name. Raises UsageError."""
    if not _loaded:
        from importlib.metadata import entry_points  # noqa: PLC0415 - slower to import than the rest of an app

        _loaded.append(True)
        for point in entry_points(group=GROUP):
            try:
                found = point.load()
            except Exception as error:
                raise UsageError(f"The node type {point.name} ({point.value}) cannot be imported: {error}.") from error
            if not isinstance(found, NodeType):
                raise UsageError(f"The node type {point.name} ({point.value}) is not a weft.NodeType.")
            register_node_type(found)
    return dict(_known)


class _NodeCall(msgspec.Struct):
    config: msgspec.Raw
    input: msgspec.Raw = msgspec.Raw(b"null")


_read = msgspec.json.Decoder(_NodeCall).decode


class NodeTypeBody:
    """Performs the nodes of one type."""

    __slots__ = ("_config", "_type", "name")

    def __init__(self, node_type: NodeType) -> None:
        self.name = node_type.name
        self._type = node_type
        typed = node_type.config is not None and not isinstance(node_type.config, dict)
        self._config: Codec[Any] = Codec.of(node_type.config if typed else Any)

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        call = _read(given)
        config = self._config.decode(bytes(call.config), what=f"{self.name} is configured with")
        value = msgspec.json.decode(call.input)
        if inspect.iscoroutinefunction(self._type.perform):
            output = await self._type.perform(config, value)
        else:
            output = await call_in_thread(executor, lambda: self._type.perform(config, value))
        return encode(output, what=f"{self.name} returned")

    def is_final(self, error: BaseException) -> bool:
        return isinstance(error, Critical | LimitExceeded | WeftError)

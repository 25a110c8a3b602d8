"""Agents as a program declares them. An agent is called like a workflow, or offered to another agent as a tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

import msgspec

from weft.agents.spec import AgentSpec
from weft.agents.tools.spec import first_paragraph
from weft.authoring.agents.covers import check_prices
from weft.authoring.agents.declaration import AgentDeclaration, declared_limits
from weft.authoring.agents.reply import Reply
from weft.authoring.context import Context
from weft.authoring.runnable import Invocation, RunnableGroup
from weft.authoring.workflows import Workflow, WorkflowProgram, perform_workflow
from weft.core import values
from weft.core.budgets import currency_of
from weft.core.secrets import KEY, Reference
from weft.core.unstorable import to_encodable
from weft.errors import BadValue, UsageError
from weft.ports.models import BlobPart, Part, TextPart
from weft.steps.codec import Codec
from weft.steps.signature import Parameter, Signature

if TYPE_CHECKING:
    from weft.authoring.declared_models import DeclaredModels

R = TypeVar("R")

WORKFLOW = "weft.agent"
VERSION = "1"
_NAME = re.compile(r"(?<!\$)\$\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}")
_HISTORY = "history"
_PROMPT = "prompt"


class AgentInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The input of a run of an agent."""

    agent: str
    prompt: str | tuple[TextPart | BlobPart, ...] = ""
    history: str | None = None
    """The conversation of an earlier reply, which goes on."""
    inputs: dict[str, Any] = {}
    """The parameters of the call, for bound arguments of tools."""
    spec: AgentSpec | None = None
    """What decides, if no agent of this name is registered, as for an agent that a graph describes."""
    allowed_tools: tuple[str, ...] | None = None
    """The only tools that this run may call, with wildcards; None for all of the agent."""
    is_tainted: bool = False
    """The agent that asks has taken in words of strangers."""


class _WithModels(Protocol):
    models: DeclaredModels


_read_input = msgspec.json.Decoder(AgentInput).decode


class Agent(Workflow[..., Reply[R]], Generic[R]):
    """A registered agent.

    Calling it returns a coroutine, which is awaited or passed to ``app.run`` or ``app.start``.
    """

    is_agent = True

    def __init__(
        self,
        group: RunnableGroup,
        declaration: AgentDeclaration,
        make_program: Callable[[Workflow[Any, Any], Any], WorkflowProgram],
    ) -> None:
        """``make_program`` makes the loop of its runs."""

        async def perform(_: Context) -> Reply[Any]:
            """Run the loop of this agent: ``program`` says how."""
            raise AssertionError

        self.declaration = declaration
        self._make_program = make_program
        self.parameters = parameters_of(declaration.prompt, declaration.bound())
        signature = _signature(self.parameters, declaration)
        super().__init__(
            group,
            declaration.name,
            perform,
            signature,
            version=VERSION,
            timeout_ms=0,
            gives=declaration.gives,
            budget=declared_limits(declaration),
        )
        self.__doc__ = self.description
        self.__name__ = declaration.name

    @property
    def description(self) -> str:
        """What a model that may call this agent is told."""
        text = first_paragraph(self.declaration.system)
        return text or f"Ask the agent {self.declaration.name}."

    def program(self, context: object) -> WorkflowProgram:
        """Return the program that its runs execute."""
        return self._make_program(self, context)

    def __call__(
        self, prompt: str | Sequence[Part] = "", /, *, history: str | None = None, **inputs: Any
    ) -> Coroutine[Any, Any, Reply[R]]:
        given = self.encode_input(prompt, history, inputs)
        call = perform_workflow(Invocation(self, given))
        call.__qualname__ = self.name  # type: ignore[attr-defined]  # shown in Python's warning about a missing await
        return call

    def given(self, input: Mapping[str, Any]) -> bytes:
        """Return the input of a run from arguments by name. Raises BadValue."""
        rest = dict(input)
        history = rest.pop(_HISTORY, None)
        prompt = rest.pop(_PROMPT, "") if _PROMPT not in self.parameters else ""
        if history is not None and not isinstance(history, str):
            raise BadValue(f"{self.name}() got a history that is not text.", code="value.wrong_type", path=_HISTORY)
        return self.encode_input(prompt, history, rest)

    def encode_input(self, prompt: Any, history: str | None, inputs: Mapping[str, Any]) -> bytes:
        """Return the input of a run.

        Raises BadValue if an argument is missing or unknown, and UsageError if the agent's model is.
        """
        aliases = cast("_WithModels", self.group.root()).models.aliases
        models = aliases.chain(self.declaration.model)
        check_prices(self.name, models, aliases, currency_of(self.budget.limits) if self.budget is not None else "")
        missing = [name for name in self.parameters if name not in inputs]
        unknown = [name for name in inputs if name not in self.parameters]
        takes = ", ".join(self.parameters) or "a prompt"
        if missing or unknown:
            what = f"misses {', '.join(missing)}" if missing else f"has no parameter {unknown[0]}"
            raise BadValue(f"{self.name}() {what}.", hint=f"It takes {takes}. Nothing was started.")
        if self.declaration.prompt is not None:
            if prompt:
                raise BadValue(
                    f"{self.name}() has a prompt of its own.", hint=f"Call it with {takes}. Nothing was started."
                )
            prompt = fill_template(self.declaration.prompt, inputs)
        return encode_input(self.name, prompt, history, inputs)

    def tool_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments that another agent calls this one with."""
        if self.declaration.prompt is None and not self.parameters:
            properties: dict[str, Any] = {_PROMPT: {"type": "string", "description": "What the agent is asked to do."}}
        else:
            properties = {name: {} for name in self.parameters}
        required = list(properties)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def __repr__(self) -> str:
        return f"<weft agent {self.name}>"


def encode_input(
    agent: str,
    prompt: Any,
    history: str | None,
    inputs: Mapping[str, Any],
    spec: AgentSpec | None = None,
) -> bytes:
    """Return the input of a run of an agent as JSON. Raises BadValue."""
    raw = values.encode(
        {
            "agent": agent,
            "prompt": prompt if isinstance(prompt, str) else [_plain(part) for part in prompt],
            **({"history": history} if history else {}),
            **({"inputs": dict(inputs)} if inputs else {}),
            **({"spec": _plain(spec)} if spec is not None else {}),
        },
        what=f"{agent}() got",
    )
    read_input(raw)
    return raw


def _plain(value: Any) -> Any:
    """Return a value of JSON. Texts and numbers of other classes become plain ones."""
    return msgspec.to_builtins(value, enc_hook=to_encodable)


def with_allowed_tools(raw: bytes, allowed: Sequence[str] | None) -> bytes:
    """Return the input of a run that may call only these tools. None: all of the agent."""
    if allowed is None:
        return raw
    return values.encode({**values.decode(raw), "allowed_tools": list(allowed)})


def mark_tainted(raw: bytes) -> bytes:
    """Return the input of a run that is asked by an agent that has taken in words of strangers."""
    return values.encode({**values.decode(raw), "is_tainted": True})


def read_input(raw: bytes) -> AgentInput:
    """Read the input of a run of an agent. Raises BadValue."""
    try:
        return _read_input(raw)
    except msgspec.ValidationError as error:
        raise BadValue(f"The input of an agent is not valid: {error}.", code="value.wrong_type") from error


def parameters_of(prompt: str | None, bound: Sequence[Any]) -> tuple[str, ...]:
    """Return the names in a prompt and in bound arguments, in the order of appearance."""
    texts = [prompt or "", *(text for value in bound for text in _texts(value))]
    return tuple(dict.fromkeys(name for text in texts for name in _NAME.findall(text)))


def fill_template(template: Any, inputs: Mapping[str, Any]) -> Any:
    """Put inputs into a template. Values are data: nothing in them is evaluated.

    A text that is one name keeps the type of its value; inside a longer text, a value is its JSON, and a text itself.
    """
    if isinstance(template, Mapping) and set(template) == {KEY}:
        return Reference(template[KEY])  # a secret that the program has bound
    if isinstance(template, Mapping):
        return {key: fill_template(part, inputs) for key, part in template.items()}
    if isinstance(template, list | tuple):
        return [fill_template(part, inputs) for part in template]
    if not isinstance(template, str):
        return template
    whole = _NAME.fullmatch(template)
    if whole is not None:
        return inputs[whole[1]]
    return _NAME.sub(lambda found: _as_text(inputs[found[1]]), template).replace("$${", "${")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else values.encode(value, what="the prompt got").decode()


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [text for part in parts for text in _texts(part)]


def _signature(names: Sequence[str], declaration: AgentDeclaration) -> Signature:
    anything, text, maybe = Codec.of(Any), Codec.of(str), Codec.of(str | None)
    found = [Parameter(name, required=True, type=Any, default=None, codec=anything) for name in names]
    if declaration.prompt is None:
        found.insert(0, Parameter(_PROMPT, required=False, type=str, default="", codec=text))
    if _HISTORY in names:
        raise UsageError(f"The prompt of the agent {declaration.name} names ${{history}}, which has another meaning.")
    found.append(Parameter(_HISTORY, required=False, type=str | None, default=None, codec=maybe))
    return Signature(found, [], Codec.of(Reply[declaration.output]), takes_context=True)  # type: ignore[name-defined]

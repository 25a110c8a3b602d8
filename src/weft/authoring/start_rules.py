"""What a workflow declares about its starts: ``singleton=``, ``debounce=`` and ``batch=``."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from weft.authoring.policies import Duration
from weft.core.durations import duration_ms
from weft.core.events import ABSENT
from weft.core.start_rules import THENS, StartRule, Then
from weft.errors import BadDuration, UsageError
from weft.runtime.start_rules import DeclaredRule
from weft.steps.signature import Parameter, Signature

SIZE_MAX = 10_000
CODE = "start.bad_rule"
Key = str | Callable[..., Any]
"""CEL over the arguments of the workflow, or a function that takes them."""


@dataclass(frozen=True, slots=True)
class Singleton:
    """At most one open run of the workflow per key, or in all without a key.

    A start while such a run is open gets that run (``attach``), is refused with ``RunOpen`` (``refuse``), or cancels
    it and begins when it has ended (``replace``).
    """

    key: Key | None = None
    then: Then = "attach"


@dataclass(frozen=True, slots=True)
class Debounce:
    """Start a run when there was no start with the same key for ``quiet``, with the input of the newest start.

    It begins at the latest ``at_most`` after the first of these starts.
    """

    quiet: Duration
    key: Key | None = None
    at_most: Duration | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Collect the items of starts with the same key into one run: up to ``size``, or those that come within ``wait``.

    The workflow takes one parameter, a list. The key is CEL over the fields of one item, or a function of one item.
    """

    size: int
    wait: Duration
    key: Key | None = None


StartOption = Singleton | Debounce | Batch
KINDS: dict[str, type[StartOption]] = {"singleton": Singleton, "debounce": Debounce, "batch": Batch}
EXAMPLES = {
    "singleton": 'singleton=weft.Singleton("customer_id")',
    "debounce": 'debounce=weft.Debounce("5s", "page")',
    "batch": 'batch=weft.Batch(size=100, wait="5s")',
}


def read_rule(name: str, signature: Signature, options: Mapping[str, StartOption | None]) -> DeclaredRule | None:
    """Return the rule that a workflow declares about its starts; None if it declares none. Raises UsageError."""
    given = {option: rule for option, rule in options.items() if rule is not None}
    if not given:
        return None
    if len(given) > 1:
        raise _bad(
            f"The workflow {name} has {' and '.join(given)}, but only one of them can decide when its runs start.",
            "Keep one of them.",
        )
    ((option, rule),) = given.items()
    if not isinstance(rule, KINDS.get(option, ())):
        example = EXAMPLES.get(option, EXAMPLES["singleton"])
        raise _bad(f"{option}={str(rule)[:60]!r} of the workflow {name} is not a rule.", f"Write {example}.")
    if isinstance(rule, Singleton):
        found = _singleton(name, rule)
    elif isinstance(rule, Debounce):
        found = _debounce(name, rule)
    else:
        found = _batch(name, rule, signature)
    return _with_key(name, found, rule.key, signature)


def _singleton(name: str, rule: Singleton) -> StartRule:
    if rule.then not in THENS:
        raise _bad(f"then={rule.then!r} of {name} is not known.", f"Use one of {', '.join(THENS)}.")
    return StartRule(kind="singleton", then=rule.then)


def _debounce(name: str, rule: Debounce) -> StartRule:
    quiet_ms = _duration(name, "quiet", rule.quiet)
    at_most_ms = _duration(name, "at_most", rule.at_most) if rule.at_most is not None else 0
    if at_most_ms and at_most_ms < quiet_ms:
        raise _bad(
            f"at_most={rule.at_most!r} of {name} is shorter than quiet={rule.quiet!r}.",
            "A run starts at the latest at_most after its first start, so at_most must be longer.",
        )
    return StartRule(kind="debounce", quiet_ms=quiet_ms, at_most_ms=at_most_ms)


def _batch(name: str, rule: Batch, signature: Signature) -> StartRule:
    size: object = rule.size  # type hints are not checked at run time
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= SIZE_MAX:
        raise _bad(f"size={size!r} of {name} is not a number from 1 to {SIZE_MAX:,}.", "Write size=100.")
    wait_ms = _duration(name, "wait", rule.wait)
    parameters = signature.parameters
    if len(parameters) != 1 or not _is_list(parameters[0]):
        raise _bad(
            f"The workflow {name} collects its starts into batches, so it must take one parameter, a list.",
            f"Write: async def {name.rpartition('.')[2]}(ctx: weft.Context, items: list[str]) -> …",
        )
    return StartRule(kind="batch", size=rule.size, wait_ms=wait_ms, items=parameters[0].name)


def _with_key(name: str, rule: StartRule, key: Key | None, signature: Signature) -> DeclaredRule:
    if key is None:
        return DeclaredRule(rule)
    if isinstance(key, str):
        _check_key(name, key, rule, signature)
        defaults = signature.defaults(None)
        return DeclaredRule(replace(rule, key=key, defaults=Raw(defaults) if defaults else ABSENT))
    anything: object = key  # as above
    if not callable(anything) or inspect.iscoroutinefunction(anything):
        raise _bad(f"The key of {name} is neither text nor a function.", 'Write key="customer_id", in CEL.')
    function = key

    def call(given: bytes) -> Sequence[Any]:
        arguments = signature.unpack(given, signature.defaults(given), what=name)
        if rule.kind == "batch":
            return [function(item) for item in arguments[rule.items]]
        return [function(**arguments)]

    return DeclaredRule(replace(rule, key_in_code=True), call)


def _check_key(name: str, key: str, rule: StartRule, signature: Signature) -> None:
    """Check that a key can be compiled, and reads only arguments of the workflow. Raises UsageError."""
    from weft.conditions import BadExpression, compile_expression  # noqa: PLC0415 - slow to import, seldom needed

    try:
        names = compile_expression(key).names
    except BadExpression as error:
        raise _bad(
            f"The key {key!r} of {name} is not a CEL expression: {error.message}",
            "Write the name of a parameter, a field of one (order.customer), or a function.",
        ) from error
    if rule.kind == "batch":
        return  # the fields of items are not known here
    known = [parameter.name for parameter in signature.parameters]
    unknown = sorted(names - {*known, "input"})
    if unknown:
        raise _bad(
            f"The key `{key}` of {name} reads {', '.join(unknown)}, which is no argument of the workflow.",
            f"It takes: {', '.join(known) or 'nothing'}.",
        )


def _duration(name: str, option: str, value: Duration) -> int:
    found = duration_ms(value)
    if found <= 0:
        raise BadDuration(f"{option}={value!r} of {name} must be longer than zero.", hint=f'Write {option}="5s".')
    return found


def _is_list(parameter: Parameter) -> bool:
    return parameter.required and (typing.get_origin(parameter.type) or parameter.type) is list


def _bad(message: str, hint: str) -> UsageError:
    return UsageError(message, hint=hint, code=CODE)
